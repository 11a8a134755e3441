// Tables of holders and classes.

const FEW_ROWS = 15;

class Rows {
  // rows: each has name, bytes, objects, detail, onclick
  constructor(root, noun, rows, total) {
    Object.assign(this, { root, noun, rows, total });
    this.all = false;
    this.show();
  }

  show() {
    const listed = this.all ? this.rows : this.rows.slice(0, FEW_ROWS);
    const most = Math.max(1, ...this.rows.slice(0, 1).map((row) => row.bytes));
    this.root.replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, ...[this.noun, "bytes", "share", "objects"].map((head) => element("th", { scope: "col" }, head)))),
      element("tbody", {}, ...listed.map((row) => this.row(row, most)))));
    if (this.rows.length > FEW_ROWS) {
      const text = this.all ? `Show the first ${FEW_ROWS}` : `Show all ${grouped(this.rows.length)}`;
      this.root.append(element("button", { type: "button", className: "quiet", onclick: () => { this.all = !this.all; this.show(); } }, text));
    }
  }

  row(row, most) {
    return element("tr", {},
      element("td", { className: "name" }, element("button", { type: "button", onclick: row.onclick }, element("span", {}, ...breakable(row.name))),
        ...(row.detail ? [element("small", {}, ...breakable(row.detail))] : []),
        element("i", { className: "bar", style: `width:${(100 * row.bytes / most).toFixed(1)}%` })),
      element("td", {}, size(row.bytes)), element("td", {}, share(row.bytes, this.total)), element("td", {}, grouped(row.objects)));
  }
}
