// Changes of each page between two snapshots.

const CHANGES = [
  { key: "absent", colour: "#ffffff", dark: "#101216", title: "absent in both" },
  { key: "same", colour: "#c9c9c4", dark: "#4a4f57", title: "unchanged" },
  { key: "come", colour: "#d55e00", dark: "#ee7420", title: "now resident" },
  { key: "fuller", colour: "#e69f00", dark: "#f0c040", title: "more in use" },
  { key: "emptier", colour: "#56b4e9", dark: "#7cc7f0", title: "less in use" },
  { key: "gone", colour: "#0072b2", dark: "#2f7fc0", title: "no longer resident" },
];
const CHANGE = Object.fromEntries(CHANGES.map((change, index) => [change.key, index]));

class Changes {
  // before, after: Pictures. `cells`: an index into CHANGES for each cell of the later one.
  constructor(before, after) {
    this.before = before;
    this.after = after;
    this.cells = new Uint8Array(after.size);
    const pieces = (picture) => picture.strips.flatMap((strip) => strip.pieces).sort((one, other) => one[0] - other[0]);
    this.earlier = pieces(before);
    this.starts = this.earlier.map((piece) => piece[0]);
    pieces(after).forEach((piece) => this.compare(piece));
  }

  compare([address, pages, cell]) {
    for (let page = 0; page < pages; page++) this.cells[cell + page] = this.change(this.cellBefore(address + page * this.after.pageBytes), cell + page);
  }

  // The earlier cell of an address, or -1.
  cellBefore(address) {
    if (!(this.current && address >= this.current[0] && address < this.current[0] + this.current[1] * this.before.pageBytes)) {
      this.current = this.earlier[lastNotAbove(this.starts, address)];
    }
    if (!this.current) return -1;
    const page = Math.floor((address - this.current[0]) / this.before.pageBytes);
    return page < this.current[1] ? this.current[2] + page : -1;
  }

  change(earlier, later) {
    const was = earlier >= 0 && this.before.resident(earlier);
    const is = this.after.resident(later);
    if (!was) return is ? CHANGE.come : CHANGE.absent;
    if (!is) return CHANGE.gone;
    const difference = this.after.used(later) - this.before.used(earlier);
    return difference === 0 ? CHANGE.same : difference > 0 ? CHANGE.fuller : CHANGE.emptier;
  }

  // Bytes by kind of change.
  tally() { return this.after.tally(CHANGES, (cell) => this.cells[cell]); }
}
