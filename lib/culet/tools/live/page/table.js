// The table of processes at one moment.

// Seconds over which the use of processors is counted.
const CPU_SECONDS = 5;

const COLUMNS = [
  { title: "PSS", value: (one) => bytesText(one.pss_bytes) },
  { title: "private", value: (one) => bytesText(one.private_bytes) },
  { title: "shared", value: (one) => share(one.shared_bytes, one.rss_bytes), needs: (one) => known(one.shared_bytes) && known(one.rss_bytes) },
  { title: "RSS", value: (one) => bytesText(one.rss_bytes) },
  { title: "swap", value: (one) => bytesText(one.swap_bytes), any: (one) => one.swap_bytes > 0 },
  { title: "growth", value: (one) => signedBytes(one.growth_bytes), change: (one) => one.growth_bytes },
  { title: "CPU", value: (one, before, seconds) => cpuText(one, before, seconds) },
  { title: "malloc used", value: (one) => bytesText(one.figures.malloc_used_bytes), own: true },
  { title: "malloc free", value: (one) => bytesText(one.figures.malloc_free_bytes), own: true },
  { title: "live slots", value: (one) => countText(one.figures.live_slots), own: true },
  { title: "free slots", value: (one) => countText(one.figures.free_slots), own: true },
  { title: "GC/min", value: (one) => (known(one.figures.gc_per_minute) ? one.figures.gc_per_minute.toFixed(1) : UNKNOWN), own: true },
  { title: "trims", value: (one) => countText(one.figures.trims), own: true, any: (one) => one.figures && known(one.figures.trims) },
];

function cpuText(process, before, seconds) {
  if (!before || !known(process.cpu_seconds) || !(seconds > 0)) return UNKNOWN;
  return `${Math.max(0, 100 * (process.cpu_seconds - before.cpu_seconds) / seconds).toFixed(0)} %`;
}

class ProcessTable {
  constructor(choose, colours) {
    Object.assign(this, { choose, colours });
    this.root = document.getElementById("processes");
    this.hint = document.getElementById("hint");
    this.body = element("tbody");
    this.head = element("thead");
    this.root.append(this.head, this.body);
    this.body.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.choose(button.dataset.key);
    });
  }

  render(store, index, subject) {
    const { state, at } = store.moments[index];
    const earlier = store.moments[store.indexAt(at - CPU_SECONDS)];
    const processes = state.order.map((key) => ({ key, process: state.processes[key] }));
    const columns = COLUMNS.filter((column) => !column.any || processes.some(({ process }) => column.any(process)))
      .filter((column) => !column.own || processes.some(({ process }) => process.figures));
    update(this.head, [element("tr", {}, element("th", { scope: "col" }, "Process"), ...columns.map(({ title }) => element("th", { scope: "col" }, title)))]);
    const roots = new Set(processes.map(({ process }) => process.pid));
    update(this.body, processes.map(({ key, process }) => this.row(key, process, columns, earlier.state.processes[key], at - earlier.at, subject, roots)));
    this.paint(processes);
    this.explain(processes);
  }

  row(key, process, columns, before, seconds, subject, pids) {
    const classes = [key === subject && "selected", pids.has(process.parent_pid) && "child"].filter(Boolean).join(" ");
    const button = element("button", { type: "button", "data-key": key, "aria-pressed": String(key === subject) }, element("i"), element("span", {}, processName(process)));
    return element("tr", { className: classes }, element("th", { scope: "row" }, button),
      ...columns.map((column) => this.cell(column, process, before, seconds)));
  }

  cell(column, process, before, seconds) {
    const shown = (!column.own || process.figures) && (!column.needs || column.needs(process));
    const change = column.change && column.change(process);
    return element("td", { className: change > 0 ? "more" : change < 0 ? "less" : "" }, shown ? column.value(process, before, seconds) : UNKNOWN);
  }

  // Colours are set one by one: the policy of the page allows no style in attributes.
  paint(processes) {
    processes.forEach(({ key }, at) => { this.body.children[at].querySelector("i").style.background = themed(this.colours.of(key)); });
  }

  explain(processes) {
    const ruby = processes.filter(({ process }) => process.ruby && !process.figures).length;
    const closed = processes.filter(({ process }) => !known(process.pss_bytes)).length;
    const lines = [];
    if (closed) lines.push(`${counted(closed, "process", "processes")} may not be read: run culet as their user, or as root.`);
    if (ruby) lines.push("Levels, slots and collections are known of processes that have loaded culet/agent: require \"culet/agent\".");
    this.hint.hidden = !lines.length;
    this.hint.textContent = lines.join(" ");
  }
}
