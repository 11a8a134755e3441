// Builds the page. `culetRetain` gives other scripts the page's state.

class Page {
  constructor(facts) {
    this.heap = new Heap(facts);
    this.tip = new Tip(document.getElementById("tip"));
    this.find = document.getElementById("find");
    this.map = new Treemap(document.getElementById("map"), this.heap, { tip: this.tip, onZoom: (node) => this.path(node), onSelect: (node) => this.tell(node) });
    this.tables();
    this.legend();
    this.path(0);
    this.listen();
  }

  listen() {
    this.find.addEventListener("input", () => this.search());
    document.addEventListener("keydown", (event) => this.press(event));
    DARK.addEventListener("change", () => {
      this.map.colours.read();
      this.map.draw();
    });
    new ResizeObserver(() => { if (this.map.root.clientWidth !== this.map.width || this.map.root.clientHeight !== this.map.height) this.map.resize(); }).observe(this.map.root);
  }

  press(event) {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      this.find.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && event.target === this.find) this.next();
    else if (event.key === "Escape") {
      if (this.find.value !== "") this.look("");
      else this.map.zoom(0);
    }
  }

  look(word) {
    this.find.value = word;
    this.search();
  }

  search() {
    const word = this.find.value.trim().toLowerCase();
    const output = document.getElementById("matches");
    this.turn = -1;
    this.matches = [];
    if (word === "") {
      output.textContent = "";
      this.map.mark(null);
      return;
    }
    const found = this.heap.find(word);
    const { bytes, count } = this.heap.sum(found);
    found.forEach((one, node) => { if (one) this.matches.push(node); });
    this.matches.sort((one, other) => this.heap.bytes(other) - this.heap.bytes(one));
    output.textContent = count > 0 ? `found: ${grouped(count)}, ${size(bytes)}, ${share(bytes, this.heap.total)}` : "no match";
    this.map.mark(found);
  }

  // Enter selects what was found, the largest first.
  next() {
    if (!this.matches || this.matches.length === 0) return;
    this.turn = (this.turn + 1) % this.matches.length;
    this.map.select(this.matches[this.turn]);
  }

  // The zoomed node and what is around it.
  path(node) {
    const line = [0, ...this.heap.line(node)];
    const few = line.length > 8 ? [line[0], line[1], null, ...line.slice(-5)] : line;
    document.getElementById("path").replaceChildren(...few.map((one, at) => {
      if (one === null) return element("li", { className: "muted" }, `… ${line.length - 7} more …`);
      const text = one === 0 ? "all" : this.heap.label(one);
      if (at === few.length - 1) return element("li", { "aria-current": "true" }, text);
      return element("li", {}, element("button", { type: "button", onclick: () => this.map.zoom(one) }, text));
    }));
  }

  // The figures of what is selected, and the references that lead to it.
  tell(node) {
    const root = document.getElementById("told");
    if (node === 0) {
      root.replaceChildren();
      return;
    }
    const [name, ...figures] = this.heap.describe(node);
    const line = this.heap.line(node).map((one) => this.heap.label(one));
    const paths = this.heap.paths.get(node) || [line.join(" -> ")];
    root.replaceChildren(element("b", {}, name), element("div", {}, figures.join("; ")), ...paths.filter(Boolean).map((path) => element("code", {}, path)));
  }

  tables() {
    const { heap } = this;
    const { objects } = heap.nodes;
    const holders = heap.children[0].map((node) => ({
      name: heap.name(node), bytes: heap.bytes(node), objects: objects[node], detail: (heap.paths.get(node) || [])[0], onclick: () => this.jump(node),
    }));
    const classes = heap.classes.map(([name, count, bytes]) => ({
      name: heap.strings[name] || "(internal)", bytes, objects: count, onclick: () => { this.look(heap.strings[name]); this.map.root.scrollIntoView({ block: "nearest" }); },
    }));
    this.holders = new Rows(document.getElementById("holders"), "holder", holders, heap.total);
    this.classes = new Rows(document.getElementById("classes"), "class", classes, heap.total);
  }

  jump(node) {
    this.map.zoom(node);
    this.map.root.scrollIntoView({ block: "nearest" });
  }

  legend() {
    const used = new Set(Array.from({ length: this.heap.size }, (_, node) => this.heap.kind(node)));
    document.getElementById("legend").replaceChildren(...KINDS.map((kind, at) => (used.has(at) ? element("li", {}, element("i", { className: "swatch", style: `background:var(--kind-${at})` }), kind) : null)).filter(Boolean));
  }
}

async function start() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser has no DecompressionStream; use Chrome 80, Firefox 113, Safari 16.4 or newer");
  window.culetRetain = new Page(JSON.parse(new TextDecoder().decode(await unpack("data"))));
}

start().then(() => { document.documentElement.dataset.retain = "drawn"; }, (error) => {
  document.documentElement.dataset.retain = "failed";
  const note = document.getElementById("failure");
  note.hidden = false;
  note.textContent = `The treemap cannot be drawn: ${error.message}.`;
});
