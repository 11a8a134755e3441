// Builds the page. `culetProfile` gives other scripts the page's state.

class Page {
  constructor(facts) {
    this.profile = new Profile(facts);
    this.colours = new Colours();
    this.tip = new Tip(document.getElementById("tip"));
    this.told = document.getElementById("told");
    this.find = document.getElementById("find");
    this.state = { view: facts.view, filters: new Map(), lines: true, native: true, tab: "graph" };
    this.graph = new Icicle(document.querySelector("[data-graph=all]"), this.colours, {
      tip: this.tip, rootLabel: "all", onZoom: () => this.path(), onTell: (lines) => this.tell(lines), onOpen: (node) => this.open(node),
    });
    this.functions = new Functions(document.getElementById("functions"), this.colours, this.tip);
    this.groups = new Groups(document.getElementById("groups"), this.profile, (key, value) => this.filter(key, value));
    this.legend();
    this.listen();
    this.refresh();
  }

  listen() {
    document.querySelectorAll("[name=view]").forEach((radio) => {
      radio.checked = radio.value === this.state.view;
      radio.addEventListener("change", () => this.set({ view: radio.value }));
    });
    document.querySelectorAll("[data-tab]").forEach((button) => button.addEventListener("click", () => this.set({ tab: button.dataset.tab })));
    const lines = document.getElementById("lines"), native = document.getElementById("native");
    lines.addEventListener("change", () => this.set({ lines: lines.checked }));
    native.addEventListener("change", () => this.set({ native: native.checked }));
    this.find.addEventListener("input", () => this.search());
    document.addEventListener("keydown", (event) => this.press(event));
    DARK.addEventListener("change", () => this.recolour());
    new ResizeObserver(() => this.resize()).observe(document.querySelector("main"));
  }

  press(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox" && event.target.type !== "radio";
    if (event.key === "/" && !typing) {
      this.find.focus();
      event.preventDefault();
    } else if (event.key === "Escape") {
      if (this.find.value !== "") {
        this.find.value = "";
        this.search();
      } else if (this.state.tab === "graph") this.graph.zoom(0);
    }
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.refresh();
  }

  filter(key, value) {
    if (value === null) this.state.filters.delete(key);
    else if (value !== undefined) this.state.filters.set(key, value);
    this.refresh();
  }

  // 1 for each site that all filters let through, except those of group `but`.
  shown(but = null) {
    const groups = this.profile.groups.filter((group) => group.key !== but && this.state.filters.has(group.key));
    return Uint8Array.from({ length: this.profile.siteCount }, (_, site) => (groups.every((group) => group.of[site] === this.state.filters.get(group.key)) ? 1 : 0));
  }

  picture(lines) {
    const { profile, state } = this;
    const tree = profile.fold(lines, state.native);
    const shown = this.shown();
    const before = profile.comparing ? profile.weigh(tree, profile.view(state.view, true), shown) : null;
    return Object.assign(new Picture(profile, tree, profile.weigh(tree, profile.view(state.view), shown), before), { lines });
  }

  refresh() {
    const { profile, state } = this;
    document.querySelectorAll("[data-tab]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.tab === state.tab)));
    document.getElementById("graph").hidden = state.tab !== "graph";
    document.getElementById("functions").hidden = state.tab !== "functions";
    document.getElementById("lines").closest("label").hidden = state.tab !== "graph";
    document.querySelector(".search").hidden = state.tab !== "graph";
    document.getElementById("native").closest("label").hidden = !profile.frames.library.some((library) => library >= 0);
    const picture = this.picture(state.lines && state.tab === "graph");
    document.getElementById("nothing").hidden = picture.total > 0;
    const zoomed = this.graph.picture && this.graph.picture.tree === picture.tree && picture.bytes(this.graph.zoomed) > 0 ? this.graph.zoomed : 0;
    if (state.tab === "graph") this.graph.show(picture, zoomed);
    else this.functions.show(picture);
    const before = profile.comparing ? profile.view(state.view, true) : null;
    this.groups.show(profile.view(state.view), before, state.filters, (key) => this.shown(key));
    this.chips(picture);
    this.search();
    this.path();
  }

  chips(picture) {
    const chips = [...this.state.filters].map(([key, value]) => {
      const group = this.profile.groups.find((one) => one.key === key);
      return element("button", { type: "button", className: "chip", title: "remove this filter", onclick: () => this.filter(key, null) }, `${group.noun}: ${this.profile.strings[value]}`, element("span", { "aria-hidden": "true" }, "×"));
    });
    const root = document.getElementById("chips");
    root.hidden = chips.length === 0;
    root.replaceChildren("Only ", ...chips, element("span", { className: "muted" }, withInterval(picture.sums.at(0), this.profile.distance)));
  }

  // Marks the frames that the search has found, and adds up the sites with one of them.
  search() {
    const word = this.find.value.trim().toLowerCase();
    const output = document.getElementById("matches");
    const graph = this.graph;
    if (this.state.tab !== "graph" || word === "") {
      output.textContent = "";
      graph.mark(null);
      return;
    }
    const { picture } = graph;
    const frames = Uint8Array.from(this.profile.labels, (_, frame) => (this.profile.matches(frame, word) ? 1 : 0));
    const found = new Uint8Array(picture.tree.size), sum = new Sum();
    const inside = new Uint8Array(picture.tree.size);
    for (let node = 1; node < picture.tree.size; node++) {
      const parent = picture.tree.parents[node];
      found[node] = frames[picture.tree.frames[node]];
      inside[node] = inside[parent] || found[node];
      if (found[node] && !inside[parent]) sum.add(picture.sums.at(node));
    }
    output.textContent = sum.samples > 0 ? `found: ${withInterval(sum, this.profile.distance)}, ${share(sum.bytes, picture.total)}` : "no match";
    graph.mark(found);
  }

  // The zoomed frame and its callers.
  path() {
    const root = document.getElementById("path");
    if (this.state.tab !== "graph") return;
    const nodes = this.graph.picture.tree.path(this.graph.zoomed);
    const few = nodes.length > 8 ? [nodes[0], null, ...nodes.slice(-5)] : nodes;
    root.replaceChildren(...few.map((node, at) => {
      if (node === null) return element("li", { className: "muted" }, `… ${nodes.length - 6} frames …`);
      if (at === few.length - 1) return element("li", { "aria-current": "true" }, this.graph.name(node));
      return element("li", {}, element("button", { type: "button", onclick: () => this.graph.zoom(node) }, this.graph.name(node)));
    }));
  }

  open(node) {
    const frame = this.graph.picture.tree.frames[node];
    if (frame < 0) return;
    this.functions.selected = this.profile.functions[frame];
    this.set({ tab: "functions" });
  }

  tell(lines) { this.told.textContent = lines.join("; "); }

  legend() {
    const root = document.getElementById("legend");
    const item = (colour, text) => element("li", {}, element("i", { className: "swatch", style: `background:${colour}` }), text);
    if (this.profile.comparing) {
      root.replaceChildren(item("var(--more)", "more bytes than before"), item("var(--less)", "fewer bytes"), item("var(--same)", "no change beyond the interval"));
      return;
    }
    const used = new Set(this.profile.frames.kind);
    root.replaceChildren(...KINDS.map((kind, at) => (used.has(at) ? item(`var(--kind-${at})`, kind) : null)).filter(Boolean));
  }

  recolour() {
    this.colours.read();
    this.resize();
  }

  resize() {
    if (this.state.tab === "graph") this.graph.resize();
    else this.functions.resize();
  }
}

async function start() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser has no DecompressionStream; use Chrome 80, Firefox 113, Safari 16.4 or newer");
  window.culetProfile = new Page(JSON.parse(new TextDecoder().decode(await unpack("data"))));
}

start().then(() => { document.documentElement.dataset.profile = "drawn"; }, (error) => {
  document.documentElement.dataset.profile = "failed";
  const note = document.getElementById("failure");
  note.hidden = false;
  note.textContent = `The graph cannot be drawn: ${error.message}.`;
});
