// A flame graph on a canvas: the width of a box is its weight, a box below another was called by it. The canvas covers the
// visible part of the graph only, so that a deep graph needs no large canvas.

const ROW = 20;
const CALLERS = 3; // of the zoomed frame, besides the root
const LEAST_PIXELS = 0.6;
const LABEL_PIXELS = 34;

// Shows a picture: a WeighedTree with name(node) and figure(node), the text of a box, describe(node), the lines of its
// tooltip, and perhaps failed, 1 for each box with a mark. The selected node is described in #told.
class Flame {
  // colours: CanvasColours with of(picture, node), the colour of a box
  constructor(scroller, colours) {
    const spacer = element("div", { className: "spacer" }), canvas = element("canvas");
    Object.assign(this, { scroller, spacer, canvas, colours, zoomed: 0, selected: 0, hovered: -1, found: null });
    this.tip = new Tip(document.getElementById("tip"));
    this.context = canvas.getContext("2d");
    spacer.append(canvas);
    scroller.append(spacer);
    for (const event of ["focus", "blur", "scroll"]) scroller.addEventListener(event, () => this.draw());
    scroller.addEventListener("keydown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.hover(this.under(event), event));
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("click", (event) => this.zoom(this.under(event)));
    new ResizeObserver(() => this.resize()).observe(document.querySelector("main"));
    DARK.addEventListener("change", () => {
      colours.read();
      this.draw();
    });
  }

  show(picture, zoomed = 0) {
    Object.assign(this, { picture, zoomed, selected: zoomed, hovered: -1 });
    this.resize();
    this.showPath();
  }

  zoom(node) {
    if (!(this.picture.weights[node] > 0)) return;
    this.show(this.picture, node);
    this.tell(node);
  }

  // The graph's height follows the levels of the zoomed part. Of its callers the nearest ones are shown.
  resize() {
    if (!this.picture) return;
    this.width = this.scroller.clientWidth;
    this.hidden = Math.max(0, this.picture.depths[this.zoomed] - 1 - CALLERS);
    this.levels = this.picture.deepest(this.zoomed, this.picture.weights[this.zoomed] * LEAST_PIXELS / Math.max(1, this.width)) + 1 - this.hidden;
    this.spacer.style.height = `${this.levels * ROW}px`;
    this.height = Math.min(this.levels * ROW, this.scroller.clientHeight || this.levels * ROW);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw();
  }

  row(depth) { return depth === 0 ? 0 : depth - this.hidden; }

  top(depth) { return this.row(depth) * ROW - this.scroller.scrollTop; }

  // Left edge and width of a node; ancestors of the zoomed node are as wide as the graph.
  extent(node) {
    const { depths, left } = this.picture;
    if (depths[node] <= depths[this.zoomed]) return [0, this.width];
    const scale = this.width / this.picture.weights[this.zoomed];
    return [(left[node] - left[this.zoomed]) * scale, this.picture.weights[node] * scale];
  }

  visible(depth) {
    const top = this.top(depth);
    return top > -ROW && top < this.height;
  }

  draw() {
    if (!this.picture) return;
    const { context, picture, colours } = this;
    this.drawn = 0;
    context.clearRect(0, 0, this.width, this.height);
    context.font = colours.font;
    context.textBaseline = "middle";
    if (picture.total === 0) return;
    picture.path(this.zoomed).filter((_, depth) => depth === 0 || depth > this.hidden).forEach((node) => this.box(node, 0, this.width));
    this.below();
    for (const [node, colour] of [[this.hovered, colours.ink], [this.scroller.matches(":focus-visible") ? this.selected : -1, colours.focus]]) {
      if (node >= 0) this.outline(node, colour);
    }
  }

  // All boxes below the zoomed one that are wide enough to see. Children are sorted: behind the first narrow one all are.
  below() {
    const { picture } = this;
    const scale = this.width / picture.weights[this.zoomed];
    const start = picture.left[this.zoomed];
    const stack = [this.zoomed];
    while (stack.length) {
      const node = stack.pop();
      const depth = picture.depths[node] + 1;
      for (let at = picture.first[node]; at < picture.first[node + 1]; at++) {
        const child = picture.children[at];
        const width = picture.weights[child] * scale;
        const left = (picture.left[child] - start) * scale;
        if (width < LEAST_PIXELS) {
          this.narrow(picture.children.subarray(at, picture.first[node + 1]), left, scale, depth);
          break;
        }
        this.box(child, left, width);
        stack.push(child);
      }
    }
  }

  // One box for all that are too narrow to be drawn.
  narrow(nodes, left, scale, depth) {
    if (!this.visible(depth)) return;
    const width = nodes.reduce((sum, node) => sum + this.picture.weights[node], 0) * scale;
    if (width < LEAST_PIXELS) return;
    this.context.globalAlpha = this.found ? 0.25 : 1;
    this.context.fillStyle = this.colours.rest;
    this.context.fillRect(left, this.top(depth), width, ROW - 1);
    this.context.globalAlpha = 1;
  }

  box(node, left, width) {
    const depth = this.picture.depths[node];
    if (!this.visible(depth)) return;
    this.drawn++;
    const { context, colours } = this;
    const top = this.top(depth);
    const above = depth < this.picture.depths[this.zoomed];
    context.globalAlpha = this.found && !this.found[node] ? 0.22 : above ? 0.55 : 1;
    const colour = colours.of(this.picture, node);
    context.fillStyle = colour;
    context.fillRect(left, top, width > 3 ? width - 1 : width, ROW - 1);
    context.fillStyle = colour === colours.rest ? colours.ink : colours.onBox;
    if (this.picture.failed?.[node]) context.fillRect(left, top + ROW - 4, width, 3);
    if (width >= LABEL_PIXELS) {
      context.globalAlpha = this.found && !this.found[node] ? 0.45 : above ? 0.8 : 1;
      this.label(node, left, top, width);
    }
    context.globalAlpha = 1;
  }

  label(node, left, top, width) {
    const { context } = this;
    const room = width - 11;
    const name = fitted(context, this.picture.name(node), room), figure = this.picture.figure(node);
    context.fillText(name, left + 5, top + ROW / 2);
    if (room - context.measureText(name).width > context.measureText(figure).width + 14) {
      context.textAlign = "right";
      context.globalAlpha *= 0.75;
      context.fillText(figure, left + width - 6, top + ROW / 2);
      context.textAlign = "left";
    }
  }

  outline(node, colour) {
    const [left, width] = this.extent(node);
    if (width < LEAST_PIXELS) return;
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2;
    this.context.strokeRect(left + 1, this.top(this.picture.depths[node]) + 1, Math.max(width - 3, 1), ROW - 3);
  }

  // The node at a position relative to the canvas; -1 without one.
  at(x, y) {
    if (!this.picture || this.picture.total === 0) return -1;
    const row = Math.floor((y + this.scroller.scrollTop) / ROW);
    if (row < 0 || row >= this.levels || x < 0 || x >= this.width) return -1;
    const depth = row === 0 ? 0 : row + this.hidden;
    const { picture } = this;
    const path = picture.path(this.zoomed);
    if (depth < path.length) return path[depth];
    const weight = picture.left[this.zoomed] + x * picture.weights[this.zoomed] / this.width;
    let node = this.zoomed;
    while (picture.depths[node] < depth) {
      node = picture.childrenOf(node).find((child) => weight >= picture.left[child] && weight < picture.left[child] + picture.weights[child]);
      if (node === undefined) return -1;
    }
    return node;
  }

  select(node) {
    const { weights, depths } = this.picture;
    if (weights[node] === 0) return;
    this.selected = node;
    if (depths[node] < depths[this.zoomed]) this.zoom(node);
    this.reveal(node);
    this.draw();
    this.tell(node);
  }

  tell(node) { document.getElementById("told").textContent = this.picture.describe(node).join("\n"); }

  reveal(node) {
    const top = this.top(this.picture.depths[node]);
    if (top < 0) this.scroller.scrollTop += top;
    else if (top + ROW > this.height) this.scroller.scrollTop += top + ROW - this.height;
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.at(event.clientX - box.left, event.clientY - box.top);
  }

  // found: 1 for each node that the search has found; null without a search
  mark(found) {
    this.found = found;
    this.draw();
  }

  hover(node, event) {
    if (node !== this.hovered) {
      this.hovered = node;
      this.canvas.style.cursor = node < 0 ? "default" : "pointer";
      this.draw();
    }
    this.tip.show(node < 0 ? null : this.picture.describe(node), event);
  }

  // Arrow keys move the selection, Enter zooms, Escape and Backspace zoom out.
  press(event) {
    if (!this.picture || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.zoom(this.selected);
    else if (event.key === "Escape" || event.key === "Home") this.zoom(0);
    else if (event.key === "Backspace") this.zoom(Math.max(0, this.picture.parents[this.zoomed]));
    else {
      const next = this.beside(event.key);
      if (next === undefined) return;
      if (next >= 0) this.select(next);
    }
    event.preventDefault();
    event.stopPropagation();
  }

  // The node in the direction of an arrow key; -1: there is none; undefined for another key.
  beside(key) {
    const { picture, selected } = this;
    const parent = picture.parents[selected];
    const siblings = parent < 0 ? [] : picture.childrenOf(parent);
    const next = (step) => siblings[siblings.indexOf(selected) + step] ?? -1;
    return { ArrowUp: parent, ArrowDown: picture.childrenOf(selected)[0] ?? -1, ArrowLeft: next(-1), ArrowRight: next(1) }[key];
  }

  // Fills #path with the nodes from the root to the zoomed one.
  showPath() {
    const nodes = this.picture.path(this.zoomed);
    const few = nodes.length > 8 ? [nodes[0], nodes[1], null, ...nodes.slice(-5)] : nodes;
    document.getElementById("path").replaceChildren(...few.map((node, at) => {
      if (node === null) return element("li", { className: "muted" }, `… ${nodes.length - 7} more …`);
      if (at === few.length - 1) return element("li", { "aria-current": "true" }, this.picture.name(node));
      return element("li", {}, element("button", { type: "button", onclick: () => this.zoom(node) }, this.picture.name(node)));
    }));
  }
}
