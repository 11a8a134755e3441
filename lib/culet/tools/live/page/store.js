// The moments that the server has sent: whole states at intervals, and changes in between (RFC 7396).

// Some two hours of seconds; of a recording the server sends fewer.
const MOST_MOMENTS = 7200;

function isObject(value) { return value !== null && typeof value === "object" && !Array.isArray(value); }

// Objects without a prototype: keys come from elsewhere.
function applyPatch(before, patch) {
  if (!isObject(patch)) return patch;
  const merged = Object.assign(Object.create(null), isObject(before) ? before : null);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key]; else merged[key] = applyPatch(merged[key], value);
  }
  return merged;
}

class Store {
  constructor() {
    this.moments = [];
    this.subjects = new Map(); // processes seen: key => { key, process, last }
  }

  get last() { return this.moments[this.moments.length - 1]; }

  // Adds a frame; false: it is not the one after the last, and has no whole state.
  add({ n, full, patch, events }) {
    const last = this.last;
    if (last && n <= last.n) return true;
    if (!full && (!last || n !== last.n + 1)) return false;
    const state = full ? applyPatch(null, full) : applyPatch(last.state, patch);
    const found = (events || []).filter((event) => isObject(event));
    this.moments.push({ n, at: state.at, state, events: found });
    for (const key of state.order) this.subjects.set(key, { key, process: state.processes[key], last: n });
    if (this.moments.length > MOST_MOMENTS) this.drop();
    return true;
  }

  // Processes that ended before the first moment left are forgotten.
  drop() {
    this.moments.splice(0, MOST_MOMENTS / 10);
    const first = this.moments[0].n;
    for (const one of this.subjects.values()) if (one.last < first) this.subjects.delete(one.key);
  }

  // Index of the last moment that is not after a time.
  indexAt(at) { return Math.max(0, lastNotAbove(this.moments, at, this.moments.length, (one) => one.at)); }

  // Index of a frame's number.
  indexOf(n) {
    const first = this.moments.length ? this.moments[0].n : 0;
    return Math.min(Math.max(n - first, 0), this.moments.length - 1);
  }
}
