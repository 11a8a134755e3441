// The lines of code that hold the memory of a process whose profile runs, read while the panel is open.

const SITES_MILLISECONDS = 10000;

class Sites {
  constructor(settings) {
    this.root = document.getElementById("sites");
    this.details = this.root.querySelector("details");
    this.lead = this.root.querySelector("[data-part=lead]");
    this.table = this.root.querySelector("table");
    this.recording = settings.recording;
    this.details.addEventListener("toggle", () => this.refresh());
  }

  // process: the one that is chosen, or null; any: whether the profile of some process runs.
  choose(process, any) {
    this.root.hidden = this.recording || !any;
    const pid = process && process.figures && process.figures.profile ? process.pid : null;
    if (pid === this.pid) return;
    this.pid = pid;
    this.refresh();
  }

  refresh() {
    clearTimeout(this.timer);
    this.round = (this.round || 0) + 1;
    if (!this.details.open || this.root.hidden) return;
    this.table.replaceChildren();
    if (this.pid === null) this.lead.textContent = "Choose a process whose profile runs: in the list above the chart, or in the table.";
    else this.load(this.round);
  }

  async load(round) {
    try {
      const answer = await (await fetch(`sites?pid=${this.pid}`)).json();
      if (answer.error) throw new Error(answer.error);
      if (round === this.round) this.show(answer);
    } catch (error) {
      if (round === this.round) this.lead.textContent = `The profile cannot be read: ${error.message}`;
    }
    if (round === this.round) this.timer = setTimeout(() => this.load(round), SITES_MILLISECONDS);
  }

  show({ at, total_bytes: total, rows }) {
    this.lead.textContent = `Process ${this.pid} at ${clock(at)}: ${size(total)} in use, estimated from samples; the range is the 95 % interval.`;
    const head = element("thead", {}, element("tr", {}, ...["Line", "bytes", "95 %", "share"].map((title) => element("th", { scope: "col" }, title))));
    this.table.replaceChildren(head, element("tbody", {}, ...rows.map((row) => element("tr", {}, element("td", {}, row.name), element("td", {}, size(row.bytes)),
      element("td", { className: "same" }, `${size(row.low_bytes)} to ${size(row.high_bytes)}`), element("td", {}, `${(100 * row.share).toFixed(1)} %`)))));
  }
}
