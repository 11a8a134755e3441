// A treemap on a canvas: the area of a box is its bytes, and the box contains the objects that it keeps. Boxes are
// close to squares (Bruls, Huizing, van Wijk, "Squarified Treemaps", 2000).

const HEADER = 18;
const GAP = 2;
const LEAST = 3; // pixels of a side that is drawn
const LABEL_WIDTH = 30;
const MOST_BOXES = 12000;

class Colours extends CanvasColours {
  read() {
    super.read();
    this.kinds = KINDS.map((_, kind) => styled(`--kind-${kind}`));
  }
}

// Rectangles for sizes in descending order that fill a place: [left, top, width, height] each.
function squarify(sizes, left, top, width, height) {
  const total = sizes.reduce((sum, one) => sum + one, 0);
  const places = [];
  if (total <= 0) return places;
  const scale = width * height / total;
  let at = 0;
  while (at < sizes.length) {
    const side = Math.max(Math.min(width, height), 1e-6);
    let end = at + 1, sum = sizes[at] * scale, worst = Infinity;
    const ratio = (area, count) => Math.max(side * side * sizes[at] * scale / (area * area), area * area / (side * side * Math.max(sizes[count - 1] * scale, 1e-9)));
    worst = ratio(sum, end);
    while (end < sizes.length) {
      const next = sum + sizes[end] * scale;
      const better = ratio(next, end + 1);
      if (better > worst) break;
      [sum, worst] = [next, better];
      end++;
    }
    const thick = sum / side;
    let along = 0;
    for (let one = at; one < end; one++) {
      const long = thick > 0 ? sizes[one] * scale / thick : 0;
      places.push(width >= height ? [left, top + along, thick, long] : [left + along, top, long, thick]);
      along += long;
    }
    if (width >= height) [left, width] = [left + thick, Math.max(width - thick, 0)];
    else [top, height] = [top + thick, Math.max(height - thick, 0)];
    at = end;
  }
  return places;
}

class Treemap extends NodeCanvas {
  constructor(root, heap, onSelect) {
    super(root, root, new Colours());
    Object.assign(this, { heap, nodes: heap, onSelect, boxes: [] });
    this.resize();
    this.showPath();
  }

  showPath() { super.showPath((node) => (node === 0 ? "all" : this.heap.label(node))); }

  resize() {
    this.width = this.root.clientWidth;
    this.height = this.root.clientHeight;
    this.fit();
    this.arrange();
  }

  // The boxes of all nodes within the zoomed one that can be seen, outer ones first.
  arrange() {
    this.boxes = [{ node: this.zoomed, left: 0, top: 0, width: this.width, height: this.height, depth: 0 }];
    this.places = new Map([[this.zoomed, this.boxes[0]]]);
    for (let at = 0; at < this.boxes.length && this.boxes.length < MOST_BOXES; at++) this.fill(this.boxes[at]);
    this.draw();
  }

  fill(box) {
    const { heap } = this;
    const children = [...heap.childrenOf(box.node)];
    const header = this.headed(box) ? HEADER : GAP;
    const [width, height] = [box.width - 2 * GAP, box.height - header - GAP];
    if (children.length === 0 || width < LEAST || height < LEAST) return;
    const sizes = children.map((node) => heap.bytes(node));
    const rest = heap.bytes(box.node) - sizes.reduce((sum, one) => sum + one, 0);
    // Objects too small for a node of their own are at the end.
    const all = rest > 0 ? [...sizes, rest].sort((one, other) => other - one) : sizes;
    const blank = rest > 0 ? all.indexOf(rest) : -1;
    const places = squarify(all, box.left + GAP, box.top + header, width, height).filter((_, at) => at !== blank);
    places.forEach(([left, top, wide, high], at) => {
      if (wide < LEAST || high < LEAST) return;
      const inner = { node: children[at], left, top, width: wide, height: high, depth: box.depth + 1 };
      this.boxes.push(inner);
      this.places.set(children[at], inner);
    });
  }

  headed(box) { return box.width >= LABEL_WIDTH && box.height >= HEADER; }

  draw() {
    const { context, colours } = this;
    context.clearRect(0, 0, this.width, this.height);
    context.font = colours.font;
    context.textBaseline = "middle";
    this.boxes.forEach((box) => this.box(box));
    for (const [node, colour] of [[this.hovered, colours.ink], [this.selected > 0 || this.root.matches(":focus-visible") ? this.selected : -1, colours.focus]]) {
      const box = this.places.get(node);
      if (box) this.outline(box, colour);
    }
  }

  box(box) {
    const { context, colours, heap } = this;
    const faint = this.found && !this.found[box.node];
    const frame = heap.kind(box.node) === 4;
    context.globalAlpha = faint ? 0.35 : 1;
    context.fillStyle = this.found && this.found[box.node] ? colours.found : colours.kinds[heap.kind(box.node)];
    context.fillRect(box.left, box.top, Math.max(box.width - 1, 1), Math.max(box.height - 1, 1));
    // Deeper boxes of one colour differ by their edges.
    context.strokeStyle = colours.paper;
    context.lineWidth = 1;
    if (box.width > 6 && box.height > 6) context.strokeRect(box.left + 0.5, box.top + 0.5, box.width - 1, box.height - 1);
    if (this.headed(box)) {
      context.fillStyle = frame && !(this.found && this.found[box.node]) ? colours.ink : colours.onBox;
      this.label(box);
    }
    context.globalAlpha = 1;
  }

  label(box) {
    const { context, heap } = this;
    const middle = box.top + HEADER / 2 + 1;
    const room = box.width - 10;
    const figure = size(heap.bytes(box.node));
    const name = fitted(context, heap.label(box.node), room);
    context.fillText(name, box.left + 5, middle);
    const used = context.measureText(name).width;
    const wide = context.measureText(figure).width;
    if (room - used > wide + 12) {
      context.textAlign = "right";
      context.fillText(figure, box.left + box.width - 6, middle);
      context.textAlign = "left";
    } else if (heap.childrenOf(box.node).length === 0 && box.height >= 2 * HEADER && wide <= room) {
      context.fillText(figure, box.left + 5, middle + HEADER - 3);
    }
  }

  outline(box, colour) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2.5;
    this.context.strokeRect(box.left + 1.5, box.top + 1.5, Math.max(box.width - 4, 1), Math.max(box.height - 4, 1));
  }

  // The innermost node at a position relative to the canvas; -1 without one.
  at(x, y) {
    for (let at = this.boxes.length - 1; at >= 0; at--) {
      const box = this.boxes[at];
      if (x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height) return box.node;
    }
    return -1;
  }

  zoom(node) {
    this.zoomed = node;
    this.selected = node;
    this.hovered = -1;
    this.arrange();
    this.showPath();
    this.onSelect(node);
  }

  // Selects a node; one that is not within the zoomed part, or too small to be seen there, is zoomed to.
  select(node) {
    if (!this.places.has(node)) {
      this.zoom(node);
      return;
    }
    this.selected = node;
    this.draw();
    this.onSelect(node);
  }

  click(node) {
    if (node >= 0 && node === this.selected) this.zoom(node === this.zoomed ? Math.max(0, this.heap.parents[node]) : node);
    else if (node >= 0) this.select(node);
  }
}
