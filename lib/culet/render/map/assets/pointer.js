// Input: wheel, drag, pinch, keys, and hovering.

const WHEEL_PIXELS = 500;
const KEY_STEP = 0.2;
const ZOOM_STEP = 1.6;

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
