// The cells of a snapshot: state, colour under the filters, and averages for small scales.

const KIND_BITS = 15;
const PRIVATE = 16;
const UNSHARED = 64;
const USED_UNIT = 8;
const FIRST_RESIDENT = 3;

// Red, green and blue of "#rrggbb" as canvas images hold them.
function pixel(colour) {
  const value = parseInt(colour.slice(1), 16);
  return (255 << 24 | (value & 255) << 16 | (value & 0xff00) | value >> 16) >>> 0;
}

function mix(one, other, share) {
  let value = 255 << 24;
  for (let shift = 0; shift < 24; shift += 8) {
    const from = (one >> shift) & 255;
    value |= Math.round(from + (((other >> shift) & 255) - from) * share) << shift;
  }
  return value >>> 0;
}

class Picture {
  constructor(facts, planes, blocks) {
    this.facts = facts;
    this.blocks = blocks;
    this.columns = facts.columns;
    this.rows = facts.rows;
    this.pageBytes = facts.process.page_bytes;
    this.size = facts.cells;
    this.states = planes.subarray(0, this.size);
    this.low = planes.subarray(this.size, 2 * this.size);
    this.high = planes.subarray(2 * this.size, 3 * this.size);
    this.sections = facts.sections;
    this.strips = this.sections.flatMap((section) => section.strips.map((strip) => Object.assign(strip, { section, firstCells: strip.pieces.map((piece) => piece[2]) })));
    this.stripRows = this.strips.map((strip) => strip.row);
    this.colours = new Uint32Array(this.size);
    this.theme();
    this.recolour(new Filter());
  }

  // Applies the theme, which may change while the page is open.
  theme() {
    this.kinds = this.facts.kinds.map((kind) => (DARK.matches ? { ...kind, full: kind.dark_full, empty: kind.dark_empty } : kind));
    this.blockColours = DARK.matches ? this.facts.dark_block_colours : this.facts.block_colours;
    this.shades = this.table();
  }

  used(cell) { return (this.low[cell] | (this.high[cell] << 8)) * USED_UNIT; }

  // Lower kinds are gaps and absent pages.
  resident(cell) { return (this.states[cell] & KIND_BITS) >= FIRST_RESIDENT; }

  kind(cell) { return this.states[cell] & KIND_BITS; }

  // Bytes of the cells by kind, of which each has a key. kindOf(cell): an index into the kinds; -1: it does not count
  tally(kinds, kindOf) {
    const cells = kinds.map(() => 0);
    for (const strip of this.strips) {
      for (const [, pages, first] of strip.pieces) {
        for (let cell = first; cell < first + pages; cell++) if (kindOf(cell) >= 0) cells[kindOf(cell)]++;
      }
    }
    return Object.fromEntries(kinds.map((one, index) => [one.key, cells[index] * this.pageBytes]));
  }

  // The colour of each kind at each fullness.
  table() {
    const units = this.pageBytes / USED_UNIT;
    const table = new Uint32Array(16 * (units + 1));
    this.kinds.forEach((kind, index) => {
      const [empty, full] = [pixel(kind.empty), pixel(kind.full)];
      for (let used = 0; used <= units; used++) table[index * (units + 1) + used] = index === 0 ? 0 : mix(empty, full, used / units);
    });
    return table;
  }

  // Hidden cells keep a faint colour, so that their place remains visible.
  recolour(filter) {
    const units = this.pageBytes / USED_UNIT;
    const shown = this.kinds.map((kind) => [filter.shows(kind.key, false), filter.shows(kind.key, true)]);
    const background = pixel(this.kinds[0].full);
    const changes = filter.changes && this.changes ? CHANGES.map((change) => pixel(themed(change))) : null;
    const sharing = filter.sharing && this.facts.sharing && !changes ? SHARINGS.map((one) => pixel(themed(one))) : null;
    const shadows = this.kinds.map((kind, index) => (index === 0 ? 0 : mix(background, pixel(kind.full), 0.07)));
    for (const strip of this.strips) {
      const listed = filter.showsSection(strip.section.key);
      for (let cell = strip.cell; cell < strip.cell + strip.cells; cell++) {
        const state = this.states[cell];
        const kind = state & KIND_BITS;
        const used = Math.min(this.low[cell] | (this.high[cell] << 8), units);
        const visible = listed && shown[kind][used > 0 ? 1 : 0] && filter.showsState(state);
        const flat = kind === 0 ? null : changes ? changes[this.changes.cells[cell]] : sharing ? sharing[Sharing.of(state)] : null;
        this.colours[cell] = !visible ? shadows[kind] : flat === null ? this.shades[kind * (units + 1) + used] : flat;
      }
      strip.levels = [];
    }
  }

  // Averages of squares of 2^level cells of a strip: { width, colours }.
  level(strip, level) {
    if (level === 0) return { width: this.columns, colours: this.colours.subarray(strip.cell, strip.cell + strip.cells) };
    if (!strip.levels[level]) strip.levels[level] = Picture.halve(this.level(strip, level - 1));
    return strip.levels[level];
  }

  static halve({ width, colours }) {
    const half = Math.max(1, width >> 1);
    const rows = Math.ceil(colours.length / width);
    const out = new Uint32Array(half * ((rows + 1) >> 1));
    for (let row = 0; row < rows; row += 2) {
      for (let column = 0; column < half; column++) {
        const at = row * width + column * 2;
        out[(row >> 1) * half + column] = Picture.average(colours[at], colours[at + 1], colours[at + width], colours[at + width + 1]);
      }
    }
    return { width: half, colours: out };
  }

  // Zero is no cell, and undefined lies behind the end of the strip.
  static average(one, two, three, four) {
    let red = 0, green = 0, blue = 0, count = 0;
    if (one) { red += one & 255; green += (one >> 8) & 255; blue += (one >> 16) & 255; count++; }
    if (two) { red += two & 255; green += (two >> 8) & 255; blue += (two >> 16) & 255; count++; }
    if (three) { red += three & 255; green += (three >> 8) & 255; blue += (three >> 16) & 255; count++; }
    if (four) { red += four & 255; green += (four >> 8) & 255; blue += (four >> 16) & 255; count++; }
    return count ? (255 << 24 | Math.round(blue / count) << 16 | Math.round(green / count) << 8 | Math.round(red / count)) >>> 0 : 0;
  }

  // The cell at a position: { cell, strip, piece, address }; null outside the pieces.
  find(column, row) {
    if (column < 0 || column >= this.columns) return null;
    const strip = this.strips[lastNotAbove(this.stripRows, row)];
    return strip && row < strip.row + strip.rows ? this.within(strip, column, row - strip.row) : null;
  }

  // Like `find`, within a strip.
  within(strip, column, row) {
    const cell = strip.cell + row * this.columns + column;
    const piece = strip.pieces[lastNotAbove(strip.firstCells, cell)];
    return piece && cell < piece[2] + piece[1] ? { cell, strip, piece, address: this.address(cell, piece) } : null;
  }

  address(cell, [first, , start]) { return first + (cell - start) * this.pageBytes; }
}

// The filter of cells shown in full colour.
class Filter {
  constructor() {
    this.hidden = new Set();
    this.sections = new Set();
    this.mapped = "all";
    this.changes = false;
    this.sharing = true;
  }

  // Kinds with a free part have two names: heap and heap-free, ruby and ruby-free.
  shows(kind, inUse) {
    const split = kind === "heap" || kind === "ruby";
    return !this.hidden.has(split && !inUse ? `${kind}-free` : kind);
  }

  showsSection(key) { return !this.sections.has(key); }

  showsState(state) {
    if (this.mapped === "all") return true;
    const kind = state & KIND_BITS;
    if (kind < FIRST_RESIDENT) return true;
    if (this.mapped === "unshared") return (state & UNSHARED) !== 0;
    return (this.mapped === "private") === ((state & PRIVATE) !== 0);
  }
}
