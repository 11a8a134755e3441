// Builds the page, connects it with the server, and draws it when something changes. `culetLive` is for other scripts.

const NEAR_LIMIT = 2.5;

class Page {
  constructor(settings) {
    this.settings = settings;
    this.store = new Store();
    this.colours = new Colours();
    this.stacks = new Stacks(this.colours, settings.levels);
    this.timeline = new Timeline(this.store, settings, () => this.schedule());
    this.events = new Events(this.timeline, () => this.schedule());
    this.table = new ProcessTable((key) => this.choose(key === this.subject ? "all" : key), this.colours);
    this.subject = "all";
    this.by = null;
    this.hovered = null;
    this.makeCharts();
    this.list = document.getElementById("subject");
    this.list.addEventListener("change", () => this.choose(this.list.value));
    this.tabs = [...document.querySelectorAll("[data-by]")];
    this.tabs.forEach((tab) => tab.addEventListener("click", () => { this.by = tab.dataset.by; this.schedule(); }));
    DARK.addEventListener("change", () => { this.events.retheme(); this.schedule(); });
  }

  makeCharts() {
    const tip = new Tip(document.getElementById("tip"));
    const common = {
      sync: "culet", tip,
      hover: (at) => { this.hovered = known(at) ? at : null; this.schedule(); },
      pick: (at) => this.timeline.go(this.store.indexOf(this.moments[at].n)),
    };
    this.stack = new Chart(document.getElementById("stack"), { ...common, stacked: true });
    this.lines = new Chart(document.getElementById("lines"), { ...common, stacked: false });
  }

  // --- Connection ------------------------------------------------------------

  connect() {
    if (this.source) this.source.close();
    this.source = new EventSource("moments");
    this.source.addEventListener("open", () => this.tell("live"));
    this.source.addEventListener("moment", (event) => this.receive(event));
    this.source.addEventListener("end", () => { this.source.close(); this.tell("ended"); });
    // The browser connects again by itself, unless the server refused.
    this.source.addEventListener("error", () => this.tell(this.source.readyState === EventSource.CLOSED ? "refused" : "lost"));
  }

  receive(event) {
    if (!this.store.add(JSON.parse(event.data))) return this.connect();
    return this.schedule();
  }

  tell(state) {
    this.state = state;
    const lost = document.getElementById("failure");
    lost.hidden = state !== "lost" && state !== "refused";
    lost.textContent = state === "refused" ? "culet live refused the connection: too many pages are open, or it was started again at another address." : "The connection to culet live is lost; it is tried again. If culet live has ended, the page keeps what it has.";
    this.schedule();
  }

  // --- Drawing ---------------------------------------------------------------

  schedule() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.render(); });
  }

  choose(key) {
    this.subject = key;
    if (key !== "all" && this.by === "processes") this.by = null;
    this.schedule();
  }

  render() {
    this.showStatus();
    if (!this.store.last) return;
    const { moment, index } = this.timeline;
    this.window = this.timeline.window;
    this.moments = this.timeline.thinned(this.window);
    this.timeline.render();
    this.offerSubjects(moment.state);
    document.getElementById("moment").textContent = `${day(moment.at)} ${clock(moment.at)}, ${counted(moment.state.order.length, "process", "processes")}`;
    this.cards(moment.state);
    this.charts(moment);
    this.table.render(this.store, index, this.subject);
    this.commands(moment.state);
    this.drawn();
  }

  showStatus() {
    const root = document.getElementById("status");
    const words = { live: "live", ended: this.settings.recording ? "recording" : "all processes have ended", lost: "connection lost", refused: "not connected" };
    const paused = !this.settings.recording && this.state === "live" && !this.timeline.following;
    root.dataset.state = paused ? "paused" : this.settings.recording ? "recording" : this.state || "";
    const text = paused ? "paused" : this.settings.recording && this.state === "live" ? "recording" : words[this.state] || "connecting";
    if (root.textContent !== text) root.textContent = text;
  }

  // All processes, those of the moment, and the chosen one though it has ended.
  offerSubjects(state) {
    const keys = state.order.includes(this.subject) || this.subject === "all" ? state.order : [...state.order, this.subject];
    const names = keys.map((key) => [key, this.store.subjects.has(key) ? processName(this.store.subjects.get(key).process) : key]);
    const signature = JSON.stringify(names);
    if (signature !== this.offered) {
      this.offered = signature;
      this.list.replaceChildren(element("option", { value: "all" }, "all processes"), ...names.map(([key, name]) => element("option", { value: key }, state.order.includes(key) ? name : `${name}, ended`)));
    }
    this.list.value = this.subject;
  }

  cards(state) {
    const total = state.total || {};
    const card = (title, value, ...more) => element("div", {}, element("b", {}, title), element("span", {}, value), ...more);
    const made = [card("PSS, all processes", bytesText(total.pss_bytes)), card("Private", bytesText(total.private_bytes)), card("Growth of private", signedBytes(total.growth_bytes), element("small", { className: "muted" }, this.settings.recording ? "since the recording started" : "since culet live started"))];
    if (total.swap_bytes > 0) made.push(card("Swapped out", bytesText(total.swap_bytes)));
    const limit = state.limit;
    if (limit && known(limit.limit_bytes)) {
      made.push(card("Headroom", limitText(limit.headroom_bytes, limit.limit_bytes), element("meter", { min: 0, max: limit.limit_bytes, value: limit.used_bytes || 0, "aria-label": "Used of the limit" }),
        element("small", { className: "muted" }, `${limitText(limit.used_bytes, limit.limit_bytes)} of ${limitText(limit.limit_bytes)} used`)));
    } else {
      made.push(card("Limit", "none"));
    }
    update(document.getElementById("cards"), made);
  }

  // The division that is shown: the chosen one, or levels if they are known.
  division() {
    const divided = this.moments.some(({ state }) => (this.subject === "all" ? state.order : [this.subject]).some((key) => state.processes[key] && state.processes[key].figures && state.processes[key].figures.levels));
    if (this.by && !(this.by === "processes" && this.subject !== "all")) return this.by;
    return divided ? "levels" : this.subject === "all" ? "processes" : "sharing";
  }

  charts(moment) {
    const by = this.division();
    const times = this.moments.map((one) => one.at);
    const events = this.events.in(this.window);
    const common = { times, range: this.timeline.range, chosen: this.timeline.following ? null : moment.at };
    const parts = this.stacks.parts(this.moments, this.subject, by);
    const own = this.subject === "all" ? events : events.filter((event) => String(event.pid) === this.subject.split("-")[0]);
    this.stack.show({ ...common, series: parts, events: own, limit: this.limit(moment.state, by, parts) });
    const lines = this.stacks.lines(this.moments);
    this.lines.show({ ...common, series: lines });
    const at = this.hovered !== null && this.hovered < this.moments.length ? this.hovered : this.moments.indexOf(moment);
    this.legend("stack-legend", [...parts].reverse(), at, true);
    this.legend("lines-legend", lines, at, false);
    this.tabs.forEach((tab) => {
      tab.setAttribute("aria-pressed", String(tab.dataset.by === by));
      tab.disabled = tab.dataset.by === "processes" && this.subject !== "all";
    });
    document.getElementById("meaning").textContent = MEANINGS[this.subject === "all" && by !== "processes" ? `${by}-all` : by];
    this.events.render(events, this.timeline.following ? Infinity : moment.at + 0.5);
  }

  // The limit is of what the processes cost together. Where it is far above, it would flatten the chart.
  limit(state, by, parts) {
    const bytes = state.limit && state.limit.limit_bytes;
    if (!known(bytes) || this.subject !== "all" || (by !== "processes" && state.order.length > 1)) return null;
    const highest = this.moments.reduce((most, one, at) => Math.max(most, sumOf(parts.map((part) => part.values[at])) || 0), 0);
    return bytes <= NEAR_LIMIT * highest ? bytes : null;
  }

  legend(id, series, at, sum) {
    const root = document.getElementById(id);
    const rows = series.map((one) => element("li", {}, element("i"), element("span", { title: one.title }, one.title), element("b", {}, bytesText(one.values[at]))));
    if (sum) rows.push(element("li", { className: "sum" }, element("span", {}, this.hovered === null ? "together" : `together at ${clock(this.moments[at].at)}`), element("b", {}, bytesText(sumOf(series.map((one) => one.values[at]))))));
    update(root, rows);
    series.forEach((one, index) => { root.children[index].firstElementChild.style.background = themed(one); });
  }

  // Commands that show more of the chosen process, or of the first one.
  commands(state) {
    const root = document.getElementById("commands");
    root.hidden = this.settings.recording || !state.order.length;
    const { pid } = state.processes[this.subject] || state.processes[state.order[0]] || {};
    const text = `On a terminal: culet map ${pid} --html FILE draws its pages, culet profile ${pid} shows the lines of code that hold memory, and culet diff compares two snapshots.`;
    if (root.textContent !== text) root.textContent = text;
  }
}

startPage("live", "page", async () => {
  const page = new Page(JSON.parse(document.body.dataset.settings));
  window.culetLive = page;
  page.connect();
  page.schedule();
  await new Promise((resolve) => { page.drawn = resolve; });
});
