// Tables of the sites by line, gem, class, library and label. A row filters the whole page.

const FEW_ROWS = 10;

class Groups {
  // onFilter(key, value): value is null to end the filter
  constructor(root, profile, onFilter) {
    Object.assign(this, { root, profile, onFilter });
    this.whole = new Set();
  }

  // before: sums of the sites in the earlier profile, or null
  // allowed(key): 1 for each site that the filters of the other groups let through
  show(columns, before, filters, allowed) {
    const focus = document.activeElement?.dataset?.row;
    this.root.replaceChildren(...this.profile.groups.map((group) => this.table(group, columns, before, filters.get(group.key), allowed(group.key))).filter(Boolean));
    if (focus) this.root.querySelector(`[data-row="${CSS.escape(focus)}"]`)?.focus();
  }

  // The rows of a group: value, sum, earlier sum.
  rows(group, columns, before, shown) {
    const rows = new Map();
    for (let site = 0; site < this.profile.siteCount; site++) {
      if (!shown[site] || (columns.samples[site] === 0 && !(before && before.samples[site] > 0))) continue;
      const value = group.of[site];
      if (value < 0) continue;
      if (!rows.has(value)) rows.set(value, { value, sum: new Sum(), before: new Sum() });
      rows.get(value).sum.add(columns.at(site));
      if (before) rows.get(value).before.add(before.at(site));
    }
    return [...rows.values()].sort((one, other) => other.sum.bytes - one.sum.bytes || other.before.bytes - one.before.bytes);
  }

  table(group, columns, before, filter, shown) {
    const rows = this.rows(group, columns, before, shown);
    if (rows.length === 0 || (rows.length === 1 && group.optional)) return null;
    const total = columns.bytes.reduce((sum, bytes, site) => sum + (shown[site] ? bytes : 0), 0);
    const limit = this.whole.has(group.key) ? rows.length : FEW_ROWS;
    const listed = rows.filter((row, at) => at < limit || row.value === filter);
    const heads = ["bytes", "95 %", ...(before ? ["change"] : []), "share"];
    return element("section", { className: group.key === "line" ? "wide" : "", "aria-label": group.title },
      element("h2", {}, group.title),
      element("div", { className: "scroll" }, element("table", {},
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, group.noun), ...heads.map((head) => element("th", { scope: "col" }, head)))),
        element("tbody", {}, ...listed.map((row) => this.row(group, row, before, filter, total, rows[0].sum.bytes))))),
      ...rowsButton(rows.length, FEW_ROWS, limit > FEW_ROWS, { "data-row": `${group.key} all`, onclick: () => this.toggle(group.key) }));
  }

  row(group, row, before, filter, total, most) {
    const name = this.profile.strings[row.value];
    const pressed = row.value === filter;
    const [low, high] = row.sum.interval(this.profile.distance).map(Math.round);
    const part = most > 0 ? row.sum.bytes / most : 0;
    const button = element("button", { type: "button", title: name, "aria-pressed": String(pressed), "data-row": `${group.key} ${row.value}`, onclick: () => this.onFilter(group.key, pressed ? null : row.value) },
      element("span", {}, ...breakable(group.key === "line" ? this.profile.short(name) : name)));
    return element("tr", { className: pressed ? "selected" : "" },
      nameCell(part, button),
      element("td", {}, size(Math.round(row.sum.bytes))),
      element("td", { className: "interval" }, row.sum.samples > 0 ? range(low, high) : "–"),
      ...(before ? [this.change(row)] : []),
      element("td", {}, share(row.sum.bytes, total)));
  }

  change(row) {
    const [low, high] = row.sum.changeInterval(row.before, this.profile.distance);
    const certain = low > 0 || high < 0;
    return element("td", { className: !certain ? "muted" : high < 0 ? "less" : "more", title: certain ? "" : "within the interval" }, signed(row.sum.bytes - row.before.bytes));
  }

  toggle(key) {
    if (!this.whole.delete(key)) this.whole.add(key);
    this.onFilter(key, undefined);
  }
}
