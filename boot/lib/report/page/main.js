// Builds the page. `culetRequires` gives other scripts the page's state.

class Page {
  constructor(facts) {
    this.requires = new Requires(facts);
    this.figure = this.requires.figures[0];
    this.colours = new Colours(this.requires);
    this.graph = new Flame(document.getElementById("graph"), this.colours);
    this.find = new Find((word) => this.search(word), () => this.graph.zoom(0));
    const choice = document.getElementById("figure");
    choice.append(...this.requires.figures.map((figure) => new Option(FIGURES[figure][0], figure)));
    choice.addEventListener("change", () => this.show(Number(choice.value)));
    this.show(this.figure);
  }

  show(figure) {
    this.figure = figure;
    const picture = this.requires.picture(figure);
    this.graph.show(picture, picture.weights[this.graph.zoomed] > 0 ? this.graph.zoomed : 0);
    this.find.search();
    this.table();
  }

  search(word) {
    const { picture } = this.graph;
    const found = word === "" ? null : Uint8Array.from(this.requires.parent, (_, node) => (this.requires.matches(node, word) ? 1 : 0));
    this.graph.mark(found);
    if (!found) return "";
    const list = picture.outermost(found), sum = list.reduce((total, node) => total + picture.weights[node], 0);
    return list.length > 0 ? `found: ${FIGURES[this.figure][1](sum)}, ${share(sum, picture.total)}` : "no match";
  }

  table() {
    const rows = this.requires.sums().sort((one, other) => other.sums[this.figure] - one.sums[this.figure]);
    const most = Math.max(rows[0]?.sums[this.figure], Number.MIN_VALUE);
    const column = (figure) => (figure === this.figure ? "" : "unchosen");
    document.getElementById("gems").replaceChildren(
      element("thead", {}, element("tr", {}, ...["gem", "files"].map((head) => element("th", { scope: "col" }, head)),
        ...this.requires.figures.map((figure) => element("th", { scope: "col", className: column(figure) }, FIGURES[figure][0])))),
      element("tbody", {}, ...rows.map((row) => element("tr", {},
        nameCell(row.sums[this.figure] / most, swatch(this.colours.gems[row.gem]), ...breakable(row.name)),
        element("td", {}, grouped(row.files)),
        ...this.requires.figures.map((figure) => element("td", { className: column(figure) }, FIGURES[figure][1](row.sums[figure])))))));
  }
}

startPage("requires", "graph", async () => { window.culetRequires = new Page(await unpackJson("data")); });
