// The map of one process, read while its panel is open: the first time whole, then what changed.

const MAP_MILLISECONDS = 2500;

async function inflate(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) packed[index] = text.charCodeAt(index);
  return new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
}

// Pieces of a layout in order of address: address, pages, first cell.
function piecesOf(facts) {
  return facts.sections.flatMap((section) => section.strips).flatMap((strip) => strip.pieces).sort((one, other) => one[0] - other[0]);
}

// One reading: its facts, and a plane of the cells each for states, low and high bytes.
class Reading {
  constructor(facts, planes, version) { Object.assign(this, { facts, planes, version }); }

  // The next one: the cells of this one at their addresses, then the runs that differ.
  async next({ facts, runs, cells, version, base }) {
    const later = base === null ? applyPatch(null, facts) : applyPatch(this.facts, facts);
    const planes = base === null ? Reading.empty(later.cells) : this.carry(later);
    const bytes = await inflate(cells);
    const total = runs.reduce((sum, run) => sum + run[1], 0);
    planes.forEach((plane, index) => {
      let from = index * total;
      for (const [first, count] of runs) {
        plane.set(bytes.subarray(from, from + count), first);
        from += count;
      }
    });
    return new Reading(later, planes, version);
  }

  static empty(size) { return [0, 1, 2].map(() => new Uint8Array(size)); }

  carry(facts) {
    const planes = Reading.empty(facts.cells);
    const page = facts.process.page_bytes;
    const old = piecesOf(this.facts);
    let first = 0;
    for (const [address, pages, cell] of piecesOf(facts)) {
      const past = address + pages * page;
      while (first < old.length && old[first][0] + old[first][1] * page <= address) first++;
      for (let at = first; at < old.length && old[at][0] < past; at++) {
        const [start, count, from] = old[at];
        const low = Math.max(start, address);
        const cells = (Math.min(start + count * page, past) - low) / page;
        const source = from + (low - start) / page;
        planes.forEach((plane, index) => plane.set(this.planes[index].subarray(source, source + cells), cell + (low - address) / page));
      }
    }
    return planes;
  }

  // All planes, one after the other.
  get bytes() {
    const bytes = new Uint8Array(3 * this.facts.cells);
    this.planes.forEach((plane, index) => bytes.set(plane, index * this.facts.cells));
    return bytes;
  }
}

class MapPanel {
  constructor(settings) {
    this.root = document.getElementById("map");
    this.details = this.root.querySelector("details");
    this.lead = this.root.querySelector("[data-part=lead]");
    this.legend = this.root.querySelector("[data-part=legend]");
    this.canvas = this.root.querySelector("canvas");
    this.root.hidden = settings.recording;
    this.details.addEventListener("toggle", () => this.refresh());
    this.requests = 0;
    new ResizeObserver(() => { if (this.view && this.details.open) this.view.resize(); }).observe(this.canvas);
    DARK.addEventListener("change", () => {
      if (!this.view) return;
      this.view.retheme();
      this.view.picture.recolour(new Filter());
      this.view.redraw();
      this.colours();
    });
  }

  // process: the one that is chosen, or null.
  choose(process) {
    const pid = process ? process.pid : null;
    if (pid === this.pid) return;
    this.pid = pid;
    this.reading = null;
    this.refresh();
  }

  // Starts over; a request that is under way belongs to an earlier round then.
  refresh() {
    clearTimeout(this.timer);
    this.round = (this.round || 0) + 1;
    if (!this.details.open) return;
    this.canvas.parentElement.hidden = this.pid === null;
    if (this.pid === null) this.lead.textContent = "Choose one process: in the list above the chart, or in the table.";
    else this.load(this.round);
  }

  async load(round) {
    try {
      await this.read(round);
    } catch (error) {
      if (round === this.round) this.lead.textContent = `The map cannot be shown: ${error.message}`;
      this.reading = null;
    }
    if (round === this.round && this.details.open) this.timer = setTimeout(() => this.load(round), MAP_MILLISECONDS);
  }

  async read(round) {
    if (document.hidden) return;
    if (!this.reading) this.lead.textContent = "Reading the process.";
    this.requests += 1;
    const answer = await (await fetch(`map?pid=${this.pid}&version=${this.reading ? this.reading.version : ""}`)).json();
    if (answer.error) throw new Error(answer.error);
    if (this.reading && answer.version === this.reading.version) return;
    const next = await (this.reading || new Reading({}, [], 0)).next(answer);
    if (round === this.round) this.show(next, answer);
  }

  show(reading, { runs, base }) {
    this.reading = reading;
    const changed = base === null ? null : runs.reduce((sum, run) => sum + run[1], 0);
    const picture = new Picture(reading.facts, reading.bytes, new Blocks(null, null));
    if (this.view) {
      this.view.show(picture);
      this.view.resize();
    } else {
      this.view = new View(this.canvas, picture);
      this.pointer = new Pointer(this.view, new Tip(document.getElementById("tip")));
    }
    this.canvas.setAttribute("aria-label", `Memory map of ${reading.facts.subject}`);
    this.lead.textContent = `${reading.facts.subject}, ${reading.facts.moment}. A cell is a page of memory. Each reading pauses the process for some milliseconds (${reading.facts.pause || "not known"})` +
      `, and the panel reads every few seconds while it is open.${changed === null ? "" : ` Sent last: ${grouped(changed)} of ${grouped(reading.facts.cells)} cells.`}`;
    this.colours();
  }

  colours() {
    this.legend.replaceChildren(...this.view.picture.kinds.filter((kind) => kind.key !== "gap").map((kind) => {
      const swatch = element("i");
      swatch.style.background = kind.full === kind.empty ? kind.full : `linear-gradient(90deg, ${kind.full} 50%, ${kind.empty} 50%)`;
      return element("li", {}, swatch, element("span", {}, kind.title));
    }));
  }
}
