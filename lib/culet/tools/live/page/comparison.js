// Moments A and B: what each process has more or less, by level.

const COMPARED = [
  { title: "PSS", value: (one) => one.pss_bytes },
  { title: "private", value: (one) => one.private_bytes },
  { title: "shared", value: (one) => one.shared_bytes },
];

class Comparison {
  constructor() { this.root = document.getElementById("comparison"); }

  render(a, b) {
    const made = a && b && a !== b ? [a, b].sort((one, other) => one.at - other.at) : null;
    const key = made && made.map((moment) => moment.n).join();
    if (key === this.key) return;
    this.key = key;
    this.root.hidden = !made;
    if (made) this.root.replaceChildren(...this.table(...made));
  }

  table(from, to) {
    const keys = [...new Set([...to.state.order, ...from.state.order])];
    const levels = LEVELS.filter((level) => level.key !== "undivided" && [from, to].some(({ state }) => keys.some((key) => this.level(state.processes[key], level.key))));
    const columns = [...COMPARED, ...levels.map((level) => ({ title: level.title, value: (process) => this.level(process, level.key) }))];
    const seconds = to.at - from.at;
    const head = element("div", { className: "head" }, element("h2", {}, `From ${clock(from.at)} to ${clock(to.at)}`), element("span", { className: "muted" }, `${seconds.toFixed(0)} s`));
    const sums = columns.map(({ value }) => [from, to].map(({ state }) => sumOf(state.order.map((key) => value(state.processes[key])))));
    const rows = [this.row("All processes", sums, "total"), ...keys.map((key) => this.process(key, from, to, columns))];
    return [head, element("div", { className: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Process"), ...columns.map(({ title }) => element("th", { scope: "col" }, title)))), element("tbody", {}, ...rows)))];
  }

  level(process, key) { return process && process.figures && process.figures.levels ? process.figures.levels[key] : undefined; }

  process(key, from, to, columns) {
    const [before, after] = [from.state.processes[key], to.state.processes[key]];
    const name = `${processName(after || before)}${before ? "" : ", started"}${after ? "" : ", ended"}`;
    return this.row(name, columns.map(({ value }) => [before && value(before), after && value(after)]), "");
  }

  row(name, pairs, className) {
    return element("tr", { className }, element("th", { scope: "row" }, name), ...pairs.map(([before, after]) => this.cell(before, after)));
  }

  // A process that started or ended has all of its memory more or less.
  cell(before, after) {
    if (!known(before) && !known(after)) return element("td", {}, UNKNOWN);
    const change = (after || 0) - (before || 0);
    const title = `${known(before) ? bytesText(before) : "not there"} to ${known(after) ? bytesText(after) : "not there"}`;
    return element("td", { className: change > 0 ? "more" : change < 0 ? "less" : "same", title }, signedBytes(change));
  }
}
