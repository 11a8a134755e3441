// Input: wheel, drag, pinch, keys, and hovering with its tooltip.

const WHEEL_PIXELS = 500;
const KEY_STEP = 0.2;
const ZOOM_STEP = 1.6;

// The lines of the tooltip of a cell.
function describe(picture, found) {
  const kind = picture.kinds[picture.kind(found.cell)];
  const span = found.piece[3] === null ? null : picture.facts.mappings[found.piece[3]];
  const lines = [];
  if (found.block) {
    const { address, bytes, state, what } = found.block;
    lines.push(`${what} ${hex(address)}: ${grouped(bytes)} bytes, ${BLOCK_WORDS[state]}`);
  }
  lines.push(`page ${hex(found.address)}: ${describeState(picture, found.cell, kind)}`);
  if (kind.key !== "returned") lines.push(describeSharing(picture, picture.states[found.cell]));
  lines.push(found.strip.section.title);
  if (span) lines.push([span.label, span.path && span.path !== span.label ? span.path : null].filter(Boolean).join(", "));
  return lines.filter(Boolean);
}

function describeSharing(picture, state) {
  if (picture.facts.sharing) return SHARINGS[Sharing.of(state)].title;
  return state & PRIVATE ? "private" : "shared or file-backed";
}

function describeState(picture, cell, kind) {
  if (kind.key === "heap" || kind.key === "ruby") {
    const used = picture.used(cell);
    const rest = picture.pageBytes - used;
    const name = kind.key === "heap" ? "malloc" : "Ruby";
    if (used === 0) return `${name}, free, resident`;
    return rest === 0 ? `${name}, in use` : `${name}, ${grouped(used)} of ${grouped(picture.pageBytes)} bytes in use`;
  }
  return kind.text;
}

class Pointer {
  constructor(view, tip) {
    this.view = view;
    this.tip = tip;
    this.down = new Map();
    const canvas = view.canvas;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.down.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.leave());
    canvas.addEventListener("dblclick", (event) => this.zoomAt(event, 4));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  place(event) {
    const box = this.view.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * this.view.ratio, (event.clientY - box.top) * this.view.ratio];
  }

  zoomAt(event, factor) { this.view.zoom(factor, ...this.place(event)); }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoomAt(event, Math.exp(-event.deltaY * lines * (event.ctrlKey ? 4 : 1) / WHEEL_PIXELS));
    this.hover(event);
  }

  press(event) {
    this.view.canvas.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, event);
  }

  move(event) {
    const before = this.down.get(event.pointerId);
    if (!before) return this.hover(event);
    const others = [...this.down.values()].filter((one) => one.pointerId !== event.pointerId);
    if (others.length) this.pinch(before, event, others[0]);
    else this.view.pan((before.clientX - event.clientX) * this.view.ratio, (before.clientY - event.clientY) * this.view.ratio);
    this.down.set(event.pointerId, event);
    this.hide();
  }

  pinch(before, event, other) {
    const distance = (one) => Math.max(Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY), 1);
    this.zoomAt(other, distance(event) / distance(before));
  }

  key(event) {
    const step = Math.min(this.view.width, this.view.height) * KEY_STEP;
    const keys = { ArrowLeft: () => this.view.pan(-step, 0), ArrowRight: () => this.view.pan(step, 0), ArrowUp: () => this.view.pan(0, -step),
      ArrowDown: () => this.view.pan(0, step), "+": () => this.view.zoom(ZOOM_STEP), "=": () => this.view.zoom(ZOOM_STEP), "-": () => this.view.zoom(1 / ZOOM_STEP),
      0: () => this.view.whole(), Home: () => this.view.whole() };
    if (!keys[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  }

  hover(event) {
    const found = this.view.at(...this.place(event));
    this.view.hovered = found;
    this.view.redraw();
    if (!found) return this.hide();
    this.tip.show(describe(this.view.picture, found), event);
  }

  leave() {
    this.view.hovered = null;
    this.view.redraw();
    this.hide();
  }

  hide() { this.tip.show(null); }
}
