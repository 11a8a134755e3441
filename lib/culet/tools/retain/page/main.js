// Builds the page. `culetRetain` gives other scripts the page's state.

const FEW_ROWS = 15;

// rows: each has name, bytes, objects, detail, onclick
function showRows(root, noun, rows, total, all = false) {
  const most = Math.max(1, rows[0]?.bytes || 0);
  const cells = (row) => element("tr", {},
    nameCell(row.bytes / most, element("button", { type: "button", onclick: row.onclick }, element("span", {}, ...breakable(row.name))),
      ...(row.detail ? [element("small", {}, ...breakable(row.detail))] : [])),
    element("td", {}, size(row.bytes)), element("td", {}, share(row.bytes, total)), element("td", {}, grouped(row.objects)));
  root.replaceChildren(element("table", {},
    element("thead", {}, element("tr", {}, ...[noun, "bytes", "share", "objects"].map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows.slice(0, all ? rows.length : FEW_ROWS).map(cells))),
  ...rowsButton(rows.length, FEW_ROWS, all, { onclick: () => showRows(root, noun, rows, total, !all) }));
}

class Page {
  constructor(facts) {
    this.heap = new Heap(facts);
    this.graph = new Flame(document.getElementById("graph"), new Colours());
    this.find = new Find((word) => this.search(word), () => this.graph.zoom(0));
    this.find.field.addEventListener("keydown", (event) => { if (event.key === "Enter") this.next(); });
    this.graph.show(this.heap);
    this.tables();
    this.legend();
  }

  search(word) {
    const { heap } = this;
    const found = word === "" ? null : heap.find(word);
    this.graph.mark(found);
    this.matches = [...(found || []).keys()].filter((node) => found[node]).sort((one, other) => heap.weights[other] - heap.weights[one]);
    this.turn = -1;
    if (!found) return "";
    const bytes = heap.outermost(found).reduce((sum, node) => sum + heap.weights[node], 0);
    return this.matches.length > 0 ? `found: ${grouped(this.matches.length)}, ${size(bytes)}, ${share(bytes, heap.total)}` : "no match";
  }

  // Enter zooms to the results of the search, the largest first.
  next() {
    if (!this.matches || this.matches.length === 0) return;
    this.turn = (this.turn + 1) % this.matches.length;
    this.graph.zoom(this.matches[this.turn]);
  }

  tables() {
    const { heap } = this;
    const { objects } = heap.nodes;
    const holders = [...heap.childrenOf(0)].map((node) => ({
      name: heap.name(node), bytes: heap.weights[node], objects: objects[node], detail: heap.paths[node]?.[0], onclick: () => this.jump(node),
    }));
    const classes = heap.classes.map(([name, count, bytes]) => ({
      name: heap.strings[name], bytes, objects: count, onclick: () => { this.find.look(heap.strings[name]); this.reveal(); },
    }));
    showRows(document.getElementById("holders"), "holder", holders, heap.total);
    showRows(document.getElementById("classes"), "class", classes, heap.total);
  }

  jump(node) {
    this.graph.zoom(node);
    this.reveal();
  }

  reveal() { this.graph.scroller.scrollIntoView({ block: "nearest" }); }

  legend() {
    const used = new Set(this.heap.kinds);
    document.getElementById("legend").replaceChildren(...KINDS.map((kind, at) => (used.has(at) ? element("li", {}, swatch(`var(--kind-${at})`), kind) : null)).filter(Boolean));
  }
}

startPage("retain", "graph", async () => { window.culetRetain = new Page(await unpackJson("data")); });
