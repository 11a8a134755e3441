// The sandwich view: all functions with their sums, and the callers and callees of the selected one.

const MOST_FUNCTIONS = 300;

// Sums of each function: `total` of all sites with the function in their stack, `own` of those that end in it.
function functionSums(picture) {
  const { profile, tree, sums, before } = picture;
  const count = profile.functionFrames.length;
  const found = { total: new Sums(count), before: before ? new Sums(count) : null, own: new Float64Array(count), nodes: Array.from({ length: count }, () => []) };
  const depths = new Int32Array(count).fill(-1); // of the outermost call on the path
  const path = [];
  for (const node of picture.walk()) {
    const depth = tree.depths[node];
    while (path.length > depth) {
      const left = path.pop();
      if (left >= 0) depths[left] = -1;
    }
    const frame = tree.frames[node];
    let opened = -1;
    if (frame >= 0) {
      const one = profile.functions[frame];
      found.own[one] += sums.own[node];
      // An allocated object's class is a leaf of the tree; its bytes are those of the method that allocated it.
      if (profile.frames.kind[frame] === CLASS_KIND && tree.parents[node] > 0) found.own[profile.functions[tree.frames[tree.parents[node]]]] += sums.own[node];
      if (depths[one] < 0) {
        opened = one;
        depths[one] = depth;
        found.total.addTo(one, sums, node);
        if (before) found.before.addTo(one, before, node);
        found.nodes[one].push(node);
      }
    }
    path.push(opened);
  }
  return found;
}

// The tree below or, with `callers`, above all outermost calls of a function.
function treeAround(picture, nodes, callers) {
  const { profile, tree, sums, before } = picture;
  const around = new Tree();
  around.frames[0] = tree.frames[nodes[0]];
  const parts = []; // node of the new tree, node of the picture
  for (const start of nodes) {
    if (callers) {
      let at = 0;
      parts.push([0, start]);
      for (let up = tree.parents[start]; up > 0; up = tree.parents[up]) {
        at = around.child(at, tree.frames[up]);
        parts.push([at, start]);
      }
    } else {
      const places = new Map([[start, 0]]);
      for (const node of picture.walk(start)) {
        if (node !== start) places.set(node, around.child(places.get(tree.parents[node]), tree.frames[node]));
        parts.push([places.get(node), node]);
      }
    }
  }
  const fill = (from) => {
    const made = new Sums(around.size);
    for (const [to, node] of parts) made.addTo(to, from, node);
    return made;
  };
  return new Picture(profile, around, fill(sums), before ? fill(before) : null);
}

class Functions {
  constructor(root, colours, tip) {
    this.root = root;
    this.colours = colours;
    this.rows = root.querySelector("tbody");
    this.find = root.querySelector("input");
    this.title = root.querySelector("[data-part=function]");
    const tell = (lines) => { root.querySelector("[data-part=told]").textContent = lines.join("; "); };
    const options = { tip, onTell: tell, onOpen: (node, graph) => this.select(this.functionAt(graph, node)) };
    this.callers = new Flame(root.querySelector("[data-graph=callers]"), colours, { ...options, up: true, onOpen: (node) => options.onOpen(node, this.callers) });
    this.callees = new Flame(root.querySelector("[data-graph=callees]"), colours, { ...options, onOpen: (node) => options.onOpen(node, this.callees) });
    this.order = "total";
    this.selected = null;
    this.find.addEventListener("input", () => this.list());
    root.querySelectorAll("th [data-order]").forEach((button) => button.addEventListener("click", () => this.sort(button.dataset.order)));
    this.rows.addEventListener("click", (event) => {
      const button = event.target.closest("tr")?.querySelector("button");
      if (button) this.select(Number(button.dataset.function));
    });
  }

  functionAt(graph, node) { return graph.picture.profile.functions[graph.picture.tree.frames[node]]; }

  show(picture) {
    this.picture = picture;
    this.profile = picture.profile;
    this.sums = functionSums(picture);
    this.root.querySelectorAll("[data-changes]").forEach((one) => { one.hidden = !picture.before; });
    if (!picture.before && this.order === "change") this.order = "total";
    if (this.selected === null || this.sums.total.samples[this.selected] === 0) this.selected = this.ordered()[0] ?? null;
    this.list();
    this.around();
  }

  sort(order) {
    this.order = order;
    this.list();
  }

  value(one) {
    if (this.order === "own") return this.sums.own[one];
    if (this.order === "change") return Math.abs(this.sums.total.bytes[one] - this.sums.before.bytes[one]);
    return this.sums.total.bytes[one];
  }

  ordered() {
    const word = this.find.value.trim().toLowerCase();
    const list = [];
    this.profile.functionFrames.forEach((frame, one) => {
      const there = this.sums.total.samples[one] > 0 || (this.sums.before && this.sums.before.samples[one] > 0);
      if (there && (word === "" || this.profile.matches(frame, word))) list.push(one);
    });
    return list.sort((one, other) => this.value(other) - this.value(one));
  }

  list() {
    const list = this.ordered();
    const most = list.reduce((value, one) => Math.max(value, this.sums.total.bytes[one]), 1);
    this.root.querySelectorAll("th [data-order]").forEach((button) => {
      button.closest("th").setAttribute("aria-sort", button.dataset.order === this.order ? "descending" : "none");
    });
    this.rows.replaceChildren(...list.slice(0, MOST_FUNCTIONS).map((one) => this.row(one, most)));
    const left = list.length - MOST_FUNCTIONS;
    this.root.querySelector("[data-part=more]").textContent = left > 0 ? `and ${grouped(left)} more; the filter finds them` : "";
  }

  row(one, most) {
    const frame = this.profile.functionFrames[one];
    const total = this.sums.total.bytes[one];
    const name = element("button", { type: "button", "data-function": one, "aria-pressed": String(one === this.selected) },
      swatch(`var(--kind-${this.profile.frames.kind[frame]})`), element("span", {}, ...breakable(this.profile.labels[frame])));
    const file = this.profile.text(this.profile.frames.file[frame]);
    const place = file ? this.profile.short(file) : this.profile.place(frame);
    const bar = element("i", { className: "bar", style: `width:${(100 * total / most).toFixed(1)}%` });
    return element("tr", { className: one === this.selected ? "selected" : "" },
      element("td", { className: "name" }, name, place ? element("small", {}, ...breakable(place)) : "", bar),
      element("td", {}, this.sums.own[one] > 0 ? size(Math.round(this.sums.own[one])) : "–"),
      element("td", {}, size(Math.round(total))),
      ...(this.sums.before ? [element("td", {}, signed(total - this.sums.before.bytes[one]))] : []));
  }

  select(one) {
    if (one === undefined || this.sums.total.samples[one] === 0) return;
    this.selected = one;
    this.list();
    this.around();
  }

  around() {
    const none = this.selected === null || this.sums.total.samples[this.selected] === 0;
    this.root.querySelector(".around").hidden = none;
    if (none) return;
    const frame = this.profile.functionFrames[this.selected];
    const sum = this.sums.total.at(this.selected);
    const file = this.profile.text(this.profile.frames.file[frame]);
    this.title.replaceChildren(element("strong", {}, this.profile.labels[frame]),
      element("span", {}, [file || this.profile.place(frame), `total ${withInterval(sum, this.profile.distance)}`, this.sums.own[this.selected] > 0 && `self ${size(Math.round(this.sums.own[this.selected]))}`].filter(Boolean).join(" · ")));
    const nodes = this.sums.nodes[this.selected];
    this.callers.show(treeAround(this.picture, nodes, true));
    this.callees.show(treeAround(this.picture, nodes, false));
  }

  resize() {
    this.callers.resize();
    this.callees.resize();
  }
}
