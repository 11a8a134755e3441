// Builds the page. `culetProfile` gives other scripts the page's state.

class Page {
  constructor(facts) {
    this.profile = new Profile(facts);
    this.colours = new Colours();
    this.state = { view: facts.view, filters: new Map(), lines: true, native: true };
    this.graph = new Flame(document.getElementById("graph"), this.colours);
    this.groups = new Groups(document.getElementById("groups"), this.profile, (key, value) => this.filter(key, value));
    this.find = new Find((word) => this.search(word), () => this.graph.zoom(0));
    this.legend();
    this.listen();
    this.refresh();
  }

  listen() {
    document.querySelectorAll("[name=view]").forEach((radio) => {
      radio.checked = radio.value === this.state.view;
      radio.addEventListener("change", () => this.set({ view: radio.value }));
    });
    const lines = document.getElementById("lines"), native = document.getElementById("native");
    lines.addEventListener("change", () => this.set({ lines: lines.checked }));
    native.addEventListener("change", () => this.set({ native: native.checked }));
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
    document.getElementById("native").closest("label").hidden = !profile.frames.library.some((library) => library >= 0);
    const picture = this.picture(state.lines);
    document.getElementById("nothing").hidden = picture.total > 0;
    const zoomed = this.graph.picture && this.graph.picture.tree === picture.tree && picture.weights[this.graph.zoomed] > 0 ? this.graph.zoomed : 0;
    this.graph.show(picture, zoomed);
    const before = profile.comparing ? profile.view(state.view, true) : null;
    this.groups.show(profile.view(state.view), before, state.filters, (key) => this.shown(key));
    this.chips(picture);
    this.find.search();
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
  search(word) {
    if (word === "") {
      this.graph.mark(null);
      return "";
    }
    const { picture } = this.graph;
    const frames = Uint8Array.from(this.profile.labels, (_, frame) => (this.profile.matches(frame, word) ? 1 : 0));
    const found = Uint8Array.from(picture.tree.frames, (frame) => (frame >= 0 ? frames[frame] : 0));
    this.graph.mark(found);
    const sum = picture.outermost(found).reduce((total, node) => total.add(picture.sums.at(node)), new Sum());
    return sum.samples > 0 ? `found: ${withInterval(sum, this.profile.distance)}, ${share(sum.bytes, picture.total)}` : "no match";
  }

  legend() {
    const root = document.getElementById("legend");
    const item = (colour, text) => element("li", {}, swatch(colour), text);
    if (this.profile.comparing) {
      root.replaceChildren(item("var(--more)", "more bytes than before"), item("var(--less)", "fewer bytes"), item("var(--same)", "no change beyond the interval"));
      return;
    }
    const used = new Set(this.profile.frames.kind);
    root.replaceChildren(...KINDS.map((kind, at) => (used.has(at) ? item(`var(--kind-${at})`, kind) : null)).filter(Boolean));
  }
}

startPage("profile", "graph", async () => { window.culetProfile = new Page(await unpackJson("data")); });
