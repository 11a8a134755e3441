// Builds the page. `culetRetain` gives other scripts the page's state.

class Page {
  constructor(facts) {
    this.heap = new Heap(facts);
    this.map = new Treemap(document.getElementById("map"), this.heap, (node) => this.tell(node));
    this.find = new Find((word) => this.search(word), () => this.map.zoom(0));
    this.tables();
    this.legend();
    this.listen();
  }

  listen() {
    this.find.field.addEventListener("keydown", (event) => { if (event.key === "Enter") this.next(); });
    new ResizeObserver(() => { if (this.map.root.clientWidth !== this.map.width || this.map.root.clientHeight !== this.map.height) this.map.resize(); }).observe(this.map.root);
  }

  search(word) {
    this.turn = -1;
    this.matches = [];
    const found = word === "" ? null : this.heap.find(word);
    this.map.mark(found);
    if (!found) return "";
    found.forEach((one, node) => { if (one) this.matches.push(node); });
    this.matches.sort((one, other) => this.heap.bytes(other) - this.heap.bytes(one));
    const bytes = this.heap.outermost(found).reduce((sum, node) => sum + this.heap.bytes(node), 0);
    return this.matches.length > 0 ? `found: ${grouped(this.matches.length)}, ${size(bytes)}, ${share(bytes, this.heap.total)}` : "no match";
  }

  // Enter selects the results of the search, the largest first.
  next() {
    if (!this.matches || this.matches.length === 0) return;
    this.turn = (this.turn + 1) % this.matches.length;
    this.map.select(this.matches[this.turn]);
  }

  // The figures of the selected node, and the references that lead to it.
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
    const holders = [...heap.childrenOf(0)].map((node) => ({
      name: heap.name(node), bytes: heap.bytes(node), objects: objects[node], detail: (heap.paths.get(node) || [])[0], onclick: () => this.jump(node),
    }));
    const classes = heap.classes.map(([name, count, bytes]) => ({
      name: heap.strings[name], bytes, objects: count, onclick: () => { this.find.look(heap.strings[name]); this.map.root.scrollIntoView({ block: "nearest" }); },
    }));
    new Rows(document.getElementById("holders"), "holder", holders, heap.total);
    new Rows(document.getElementById("classes"), "class", classes, heap.total);
  }

  jump(node) {
    this.map.zoom(node);
    this.map.root.scrollIntoView({ block: "nearest" });
  }

  legend() {
    const used = new Set(Array.from({ length: this.heap.size }, (_, node) => this.heap.kind(node)));
    document.getElementById("legend").replaceChildren(...KINDS.map((kind, at) => (used.has(at) ? element("li", {}, swatch(`var(--kind-${at})`), kind) : null)).filter(Boolean));
  }
}

startPage("retain", "treemap", async () => { window.culetRetain = new Page(await unpackJson("data")); });
