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
      element("tbody", {}, ...listed.map((row) => this.row(row, most)))),
    ...rowsButton(this.rows.length, FEW_ROWS, this.all, { onclick: () => { this.all = !this.all; this.show(); } }));
  }

  row(row, most) {
    return element("tr", {},
      nameCell(row.bytes / most, element("button", { type: "button", onclick: row.onclick }, element("span", {}, ...breakable(row.name))),
        ...(row.detail ? [element("small", {}, ...breakable(row.detail))] : [])),
      element("td", {}, size(row.bytes)), element("td", {}, share(row.bytes, this.total)), element("td", {}, grouped(row.objects)));
  }
}
