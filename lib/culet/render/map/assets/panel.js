// The side panel: totals, legend and filters, sections, histograms.

// An element of a drawing.
function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function swatch(from, to = from) {
  const background = from === to ? from : `linear-gradient(to right, ${from}, ${to})`;
  return element("span", { className: "swatch", style: `background:${background}` });
}

class Panel {
  // view: the View that filters and buttons control.
  constructor(root, view) {
    this.root = root;
    this.view = view;
    this.filter = new Filter();
  }

  show(picture) {
    this.first = this.first || picture;
    this.picture = picture;
    const facts = picture.facts;
    this.fill("subject", facts.subject);
    this.fill("moment", [facts.moment, facts.pause].filter(Boolean).join("; "));
    this.list("problems", facts.problems.map((text) => element("li", {}, text)));
    this.list("totals", facts.totals.map(([key, title, bytes]) => this.total(key, title, bytes)));
    this.list("legend", this.legend());
    this.list("sharing", this.sharing());
    this.root.querySelector("[data-mapped=unshared]").hidden = !facts.sharing;
    const tables = document.getElementById("tables");
    if (tables) tables.replaceChildren(...facts.tables.map((table) => this.table(table)));
    this.list("blocks", this.blocks());
    this.list("sections", picture.sections.map((section) => this.section(section)));
    this.histogram(this.sizes());
    this.refilter();
  }

  part(name) { return this.root.querySelector(`[data-part=${name}]`); }

  fill(name, text) { this.part(name).textContent = text; }

  list(name, children) {
    const part = this.part(name);
    part.replaceChildren(...children);
    (part.closest("section") || part).hidden = children.length === 0;
  }

  total(key, title, bytes) {
    return element("tr", {}, element("th", { scope: "row" }, title),
      element("td", { "data-key": key, "data-bytes": bytes, title: `${grouped(bytes)} bytes` }, size(bytes)));
  }

  // A table of bytes; zeros are left empty.
  table({ title, columns, rows }) {
    const head = element("tr", {}, element("th", { scope: "col" }, ""), ...columns.map((name) => element("td", {}, name)));
    const cells = (row) => row.slice(1).map((bytes) => element("td", { "data-bytes": bytes, title: `${grouped(bytes)} bytes` }, bytes > 0 ? size(bytes) : ""));
    return element("section", { "aria-label": title }, element("h2", {}, title),
      element("div", { className: "scroll" }, element("table", { className: "figures" }, element("thead", { className: "muted" }, head),
        element("tbody", {}, ...rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row[0]), ...cells(row)))))));
  }

  // --- Legend and filters ------------------------------------------------------

  legend() {
    const present = new Set();
    for (const state of this.picture.states) present.add(state & KIND_BITS);
    return this.picture.kinds.flatMap((kind, index) => {
      if (index === 0 || !present.has(index)) return [];
      if (kind.key === "heap") return [this.entry("heap", "malloc: in use (stronger colour: fuller page)", kind.empty, kind.full), this.entry("heap-free", "malloc: free, resident", kind.empty)];
      if (kind.key === "ruby") return [this.entry("ruby", "Ruby: live slots (stronger colour: fuller page)", kind.empty, kind.full), this.entry("ruby-free", "Ruby: pages without live slots", kind.empty)];
      return [this.entry(kind.key, kind.title, kind.full)];
    });
  }

  // The legend of blocks and slots.
  blocks() {
    if (!this.picture.blocks.any) return [];
    return Object.entries(this.picture.blockColours).map(([state, colour]) => element("li", {}, swatch(colour), BLOCK_WORDS[state]));
  }

  entry(key, title, from, to = from) {
    return element("li", {}, element("label", {},
      element("input", { type: "checkbox", checked: !this.filter.hidden.has(key), "data-kind": key, onchange: (event) => this.toggle(this.filter.hidden, key, event.target.checked) }),
      swatch(from, to), title));
  }

  section(section) {
    return element("li", {},
      element("label", {}, element("input", { type: "checkbox", checked: this.filter.showsSection(section.key), "data-section": section.key,
        onchange: (event) => this.toggle(this.filter.sections, section.key, event.target.checked) }),
      element("span", { className: "name" }, section.title)),
      element("span", { className: "figure" }, size(section.resident_bytes)),
      element("button", { type: "button", "data-goto": section.key, title: `Show ${section.title}`, onclick: () => this.view.frameSection(section) }, "show"));
  }

  toggle(set, key, shown) {
    if (shown) set.delete(key); else set.add(key);
    this.refilter();
  }

  // Sets fields of the filter.
  choose(fields) {
    Object.assign(this.filter, fields);
    this.refilter();
  }

  // Bytes by kind of change; empty while changes are not shown.
  changes() { return this.filter.changes ? this.sums("data-change", CHANGES, this.picture.changes.tally()) : []; }

  // Bytes by sharing; empty for a single process.
  sharing() { return this.picture.facts.sharing ? this.sums("data-sharing", SHARINGS, Sharing.tally(this.picture)) : []; }

  sums(attribute, kinds, bytes) {
    return kinds.map((one) => element("li", {}, element("label", {}, swatch(themed(one)), one.title),
      element("span", { className: "figure", [attribute]: one.key, "data-bytes": bytes[one.key] }, size(bytes[one.key]))));
  }

  refilter() {
    if (this.filter.changes && !this.picture.changes) this.picture.changes = new Changes(this.first, this.picture);
    this.list("changes", this.changes());
    this.picture.recolour(this.filter);
    this.view.redraw();
  }

  // --- Histogram ---------------------------------------------------------------

  // Bars of a power of two each: [{ label, title, parts: [[colour, value], ...] }].
  sizes() {
    const sums = new Map();
    for (const [bytes, ...values] of this.picture.facts.sizes || []) {
      const power = Math.floor(Math.log2(Math.max(bytes, 1)));
      const sum = sums.get(power) || [0, 0, 0, 0];
      values.forEach((value, index) => { sum[index] += value; });
      sums.set(power, sum);
    }
    const [first, last] = [Math.min(...sums.keys()), Math.max(...sums.keys())];
    return sums.size ? Array.from({ length: last - first + 1 }, (_, index) => this.bytesOf(first + index, sums)) : [];
  }

  bytesOf(power, sums) {
    const [used, usedBytes, free, freeBytes] = sums.get(power) || [0, 0, 0, 0];
    const label = size(2 ** power);
    return { label, parts: [[this.picture.blockColours.used, usedBytes], ["#8f8f8f", freeBytes]],
      title: `${label} or more: ${grouped(used)} in use, ${size(usedBytes)}; ${grouped(free)} free, ${size(freeBytes)}` };
  }

  histogram(bars) {
    this.part("sizes").closest("section").hidden = bars.length === 0;
    const [width, height, foot] = [300, 110, 16];
    const highest = Math.max(1, ...bars.map((bar) => bar.parts.reduce((sum, [, value]) => sum + value, 0)));
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height + foot}`, role: "img", "aria-label": `Histogram of block sizes: ${bars.map((bar) => bar.title).join("; ")}` });
    const wide = width / Math.max(bars.length, 1);
    bars.forEach((bar, index) => this.bar(svg, bar, { left: index * wide, wide, height, scale: (height - 4) / highest, labelled: this.labelled(index, bars.length), foot }));
    this.part("sizes").replaceChildren(svg);
  }

  // At most five labels.
  labelled(index, count) { return index % Math.max(1, Math.ceil(count / 5)) === 0; }

  bar(svg, { label, title, parts }, { left, wide, height, scale, labelled, foot }) {
    const group = drawn("g", {});
    let top = height;
    for (const [colour, value] of parts) {
      top -= value * scale;
      if (value > 0) group.append(drawn("rect", { x: left + 0.5, y: top, width: Math.max(wide - 1, 0.5), height: Math.max(value * scale, 0.5), fill: colour }));
    }
    group.append(drawn("rect", { x: left, y: 0, width: wide, height, fill: "transparent" }), drawn("title", {}, title));
    if (labelled) {
      // In the last fifth the label is aligned to the right.
      const late = left > 240;
      group.append(drawn("text", { x: late ? left + wide - 1 : left + 1, y: height + foot - 4, "text-anchor": late ? "end" : "start" }, label));
    }
    svg.append(group);
  }
}
