// Data of the charts: stacked parts of the moments, and a line per process.

const MOST_PARTS = 12;
const MOST_LINES = 40;

const MEANINGS = {
  levels: "Resident memory by level. Pages that are shared count in each process.",
  "levels-all": "Resident memory by level, of all processes together. Pages that are shared count in each process.",
  processes: "Proportional set size of each process: together, what all of them cost.",
  sharing: "Resident memory that is private, or shared with another process or a file, and what is swapped out.",
  "sharing-all": "Private, shared and swapped memory of all processes. Pages that are shared count in each process.",
};

// The level's bytes of one process; memory without levels is one part.
function levelOf(process, key) {
  const levels = process.figures && process.figures.levels;
  if (key === "undivided") return levels ? 0 : process.rss_bytes;
  return levels ? levels[key] : 0;
}

class Stacks {
  constructor(colours, titles) { Object.assign(this, { colours, levels: levelsWith(titles) }); }

  // The parts of a subject ("all", or the key of a process) in these moments; parts that are always empty are left out.
  parts(moments, subject, by) {
    if (by === "processes") return this.processes(moments);
    const kinds = by === "levels" ? this.levels : PARTS_OF_SHARING;
    const value = by === "levels" ? levelOf : (process, key) => process[key];
    return kinds.map((kind) => ({ ...kind, values: moments.map(({ state }) => this.sum(state, subject, (process) => value(process, kind.key))) }))
      .filter((part) => part.values.some((one) => one > 0))
      .map((part) => (part.key === "undivided" && subject !== "all" ? { ...part, title: "resident, no culet/agent" } : part));
  }

  sum(state, subject, value) {
    const processes = (subject === "all" ? state.order : [subject]).map((key) => state.processes[key]).filter(Boolean);
    return sumOf(processes.map(value));
  }

  // Keys of the processes in these moments, the largest first.
  keys(moments) {
    const largest = new Map();
    for (const { state } of moments) {
      for (const key of state.order) {
        const bytes = state.processes[key].pss_bytes;
        if (known(bytes) && bytes >= (largest.get(key) || 0)) largest.set(key, bytes);
      }
    }
    return [...largest.keys()].sort((one, other) => largest.get(other) - largest.get(one));
  }

  // The number first: a long title is cut.
  name(moments, key) {
    for (let at = moments.length - 1; at >= 0; at--) if (moments[at].state.processes[key]) {
      const { pid, title } = moments[at].state.processes[key];
      return `${pid} ${title}`;
    }
    return key;
  }

  line(moments, key) {
    return { key, title: this.name(moments, key), ...this.colours.of(key), values: moments.map(({ state }) => (state.processes[key] ? state.processes[key].pss_bytes : null)) };
  }

  processes(moments) {
    const keys = this.keys(moments);
    const shown = keys.slice(0, keys.length > MOST_PARTS + 1 ? MOST_PARTS : MOST_PARTS + 1);
    const parts = shown.map((key) => this.line(moments, key));
    const rest = keys.slice(shown.length);
    if (rest.length) {
      parts.push({ key: "rest", title: counted(rest.length, "other process", "other processes"), colour: "#c9c9c4", dark: "#4a4f57",
        values: moments.map(({ state }) => sumOf(rest.map((key) => (state.processes[key] ? state.processes[key].pss_bytes : undefined)))) });
    }
    return parts;
  }

  // A line for each of the largest processes.
  lines(moments) { return this.keys(moments).slice(0, MOST_LINES).map((key) => this.line(moments, key)); }
}
