// The visible part of a picture and its drawing: `scale` pixels per cell, from the cell at `x`, `y`.

const LARGEST_CELL = 1024;
const BUTTONS_HEIGHT = 52;
const GRID_FROM = 6;
const BLOCKS_FROM = 32;
const HEADING_FROM = 9;
const SLOT_STEP = 8;
const STEPS_KEPT = 4096;
const EDGE = pixel("#3a3a3a");

class View {
  constructor(canvas, picture) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.picture = picture;
    this.hovered = null;
    this.resize();
    this.whole();
  }

  show(picture) {
    const same = this.picture.columns === picture.columns && this.picture.rows === picture.rows;
    this.picture = picture;
    this.hovered = null;
    if (same) this.redraw(); else this.whole();
  }

  resize() {
    const box = this.canvas.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.width = Math.max(1, Math.round(box.width * this.ratio));
    this.height = Math.max(1, Math.round(box.height * this.ratio));
    if (this.canvas.width === this.width && this.canvas.height === this.height && this.image) return;
    this.canvas.width = this.width;
    this.canvas.height = this.height;
    this.image = this.context.createImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    // Resizing clears the canvas: draw at once to avoid a flash.
    if (this.scale) this.draw();
  }

  // The theme changed.
  retheme() {
    this.picture.theme();
    this.steps = null;
  }

  // --- Position --------------------------------------------------------------

  // The buttons must not cover the map.
  get fit() { return Math.min(this.width / (this.picture.columns + 2), Math.max(this.height - BUTTONS_HEIGHT * this.ratio, 100) / (this.picture.rows + 1)); }

  whole() {
    this.scale = this.fit;
    this.x = (this.picture.columns - this.width / this.scale) / 2;
    this.y = -0.5;
    this.redraw();
  }

  // Keeps the cell at a point of the canvas in place.
  zoom(factor, atX = this.width / 2, atY = this.height / 2) {
    const [column, row] = [this.x + atX / this.scale, this.y + atY / this.scale];
    this.scale = Math.min(Math.max(this.scale * factor, this.fit / 2), LARGEST_CELL * this.ratio);
    this.x = column - atX / this.scale;
    this.y = row - atY / this.scale;
    this.keep();
  }

  pan(pixelsX, pixelsY) {
    this.x += pixelsX / this.scale;
    this.y += pixelsY / this.scale;
    this.keep();
  }

  // Keeps a part of the picture visible.
  keep() {
    const [half, high] = [this.width / this.scale / 2, this.height / this.scale / 2];
    this.x = Math.min(Math.max(this.x, -half), this.picture.columns - half);
    this.y = Math.min(Math.max(this.y, -high), this.picture.rows - high);
    this.redraw();
  }

  // Centres rows and columns at the largest scale that fits.
  frame(column, row, columns, rows) {
    this.scale = Math.min(this.width / columns, this.height / rows, LARGEST_CELL * this.ratio);
    this.x = column + columns / 2 - this.width / this.scale / 2;
    this.y = row + rows / 2 - this.height / this.scale / 2;
    this.keep();
  }

  frameSection(section) {
    const last = section.strips[section.strips.length - 1];
    this.frame(0, section.row, this.picture.columns + 1, last.row + last.rows - section.row + 1);
  }

  // The cell at a point of the canvas, as from Picture.find, with its block if visible.
  at(pixelX, pixelY) {
    const [column, row] = [this.x + pixelX / this.scale, this.y + pixelY / this.scale];
    const found = this.picture.find(Math.floor(column), Math.floor(row));
    if (!found) return null;
    const grid = this.grid();
    const inside = Math.floor((row % 1) * grid.rows) * grid.columns + Math.floor((column % 1) * grid.columns);
    found.block = this.scale >= BLOCKS_FROM ? this.picture.blocks.at(found.address + inside * SLOT_STEP) : null;
    return found;
  }

  // --- Drawing ---------------------------------------------------------------

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.draw(); });
  }

  draw() {
    this.pixels.fill(pixel(this.picture.kinds[0].full));
    for (const strip of this.picture.strips) {
      const top = (strip.row - this.y) * this.scale;
      const bottom = top + strip.rows * this.scale;
      if (bottom > 0 && top < this.height) this.drawStrip(strip, Math.max(0, Math.round(top)), Math.min(this.height, Math.max(Math.round(bottom), Math.round(top) + 1)));
    }
    this.context.putImageData(this.image, 0, 0);
    this.drawHeadings();
    this.drawHovered();
  }

  // The column of each pixel; -1: outside the picture or on a grid line.
  columnsOf() {
    const columns = new Int32Array(this.width);
    let before = -1;
    for (let at = 0; at < this.width; at++) {
      const column = Math.floor(this.x + (at + 0.5) / this.scale);
      const line = this.scale >= GRID_FROM && column !== before && at > 0;
      columns[at] = column < 0 || column >= this.picture.columns || line ? -1 : column;
      before = column;
    }
    return columns;
  }

  drawStrip(strip, top, bottom) {
    const level = Math.max(0, Math.floor(Math.log2(1 / this.scale)));
    const { width, colours } = this.picture.level(strip, level);
    const columns = this.columnsOf();
    let before = -1;
    let drawn = -1;
    for (let at = top; at < bottom; at++) {
      const row = Math.min(Math.max(Math.floor(this.y + (at + 0.5) / this.scale - strip.row), 0), strip.rows - 1);
      const line = row !== before && before >= 0 && this.scale >= GRID_FROM;
      before = row;
      if (line) continue;
      if (row === drawn) this.pixels.copyWithin(at * this.width, (at - 1) * this.width, at * this.width);
      else this.drawLine(colours, columns, at * this.width, (row >> level) * width, level);
      drawn = row;
    }
    if (this.scale >= BLOCKS_FROM * this.ratio && this.picture.blocks.any) this.drawBlocks(strip);
  }

  drawLine(colours, columns, to, from, level) {
    for (let at = 0; at < this.width; at++) {
      const column = columns[at];
      if (column < 0) continue;
      const colour = colours[from + (column >> level)];
      if (colour) this.pixels[to + at] = colour;
    }
  }

  // Inside a cell, bytes run in rows in steps of 8, as pages do in a strip.
  grid() {
    const steps = this.picture.pageBytes / SLOT_STEP;
    const columns = 1 << Math.ceil(Math.log2(steps) / 2);
    return { columns, rows: steps / columns };
  }

  drawBlocks(strip) {
    const firstRow = Math.max(0, Math.floor(this.y - strip.row));
    const lastRow = Math.min(strip.rows - 1, Math.floor(this.y + this.height / this.scale - strip.row));
    const firstColumn = Math.max(0, Math.floor(this.x));
    const lastColumn = Math.min(this.picture.columns - 1, Math.floor(this.x + this.width / this.scale));
    for (let row = firstRow; row <= lastRow; row++) {
      for (let column = firstColumn; column <= lastColumn; column++) {
        const found = this.picture.within(strip, column, row);
        const kind = found && this.picture.kinds[this.picture.kind(found.cell)].key;
        // Hidden and absent pages show no blocks.
        if (found && (kind === "heap" || kind === "ruby" || kind === "metadata") && this.picture.colours[found.cell] === this.picture.shades[this.shadeOf(found.cell)]) this.drawPage(found, column, strip.row + row);
      }
    }
  }

  shadeOf(cell) {
    const units = this.picture.pageBytes / USED_UNIT;
    return this.picture.kind(cell) * (units + 1) + Math.min(this.picture.used(cell) / USED_UNIT, units);
  }

  drawPage(found, column, row) {
    const grid = this.grid();
    const steps = this.stepsOf(found, grid.columns * grid.rows);
    if (!steps) return;
    const left = (column - this.x) * this.scale;
    const top = (row - this.y) * this.scale;
    const [wide, high] = [this.scale / grid.columns, this.scale / grid.rows];
    const [firstLine, pastLine] = this.insideOf(top, this.height);
    const [first, past] = this.insideOf(left, this.width);
    const columns = new Uint16Array(Math.max(0, past - first));
    for (let at = 0; at < columns.length; at++) columns[at] = Math.min(Math.floor((first + at + 0.5 - left) / wide), grid.columns - 1);
    let before = -1;
    for (let line = firstLine; line < pastLine; line++) {
      const row = Math.min(Math.floor((line + 0.5 - top) / high), grid.rows - 1);
      const to = line * this.width + first;
      if (row === before) this.pixels.copyWithin(to, to - this.width, to - this.width + columns.length);
      else this.drawSteps(steps, columns, row * grid.columns, to, wide >= 3);
      before = row;
    }
  }

  drawSteps(steps, columns, base, to, edged) {
    let before = -1;
    for (let at = 0; at < columns.length; at++) {
      const step = base + columns[at];
      if (steps.colours[step]) this.pixels[to + at] = edged && step !== before && steps.starts[step] ? EDGE : steps.colours[step];
      before = step;
    }
  }

  // First and past pixel of a cell at `from`, without the grid line.
  insideOf(from, limit) { return [Math.max(0, Math.ceil(from - 0.5) + 1), Math.min(limit, Math.ceil(from + this.scale - 0.5))]; }

  // The colour of each 8 bytes of a page and the starts of its blocks or slots; null without any. Cached for later frames.
  stepsOf(found, count) {
    if (!this.steps || this.steps.picture !== this.picture || this.steps.size >= STEPS_KEPT) this.steps = Object.assign(new Map(), { picture: this.picture });
    if (!this.steps.has(found.cell)) this.steps.set(found.cell, this.makeSteps(found, count));
    return this.steps.get(found.cell);
  }

  makeSteps(found, count) {
    const colours = new Uint32Array(count);
    const starts = new Uint8Array(count);
    let any = false;
    this.picture.blocks.each(found.address, found.address + this.picture.pageBytes, (block) => {
      any = true;
      const first = Math.floor((block.address - found.address) / SLOT_STEP);
      const past = Math.ceil((block.address + block.bytes - found.address) / SLOT_STEP);
      if (first >= 0) starts[first] = 1;
      colours.fill(pixel(this.picture.blockColours[block.state]), Math.max(0, first), Math.min(count, past));
    });
    return any ? { colours, starts } : null;
  }

  drawHeadings() {
    const context = this.context;
    const high = this.picture.facts.heading_rows * this.scale;
    const size = Math.min(Math.max(high * 0.6, 11 * this.ratio), 20 * this.ratio);
    context.textBaseline = "alphabetic";
    context.font = `600 ${size}px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif`;
    const left = Math.max(6 * this.ratio, -this.x * this.scale);
    this.picture.sections.forEach((section, index) => {
      const top = (section.row - this.y) * this.scale;
      const next = this.picture.sections[index + 1];
      const bottom = next ? (next.row - this.y) * this.scale : (this.picture.rows - this.y) * this.scale;
      if (bottom < 0 || top > this.height || high < HEADING_FROM * this.ratio) return;
      const hidden = top + high < size * 1.4;
      const baseline = hidden ? Math.min(size * 1.3, bottom) : top + high - Math.max(high * 0.18, 2);
      if (hidden) this.plate(section.heading, left, baseline, size);
      context.fillStyle = styled("--ink");
      context.fillText(section.heading, left, baseline);
    });
  }

  // The background of a heading on top of cells.
  plate(text, left, baseline, size) {
    this.context.fillStyle = styled("--paper");
    this.context.globalAlpha = 0.88;
    this.context.fillRect(left - 6 * this.ratio, baseline - size * 1.2, this.context.measureText(text).width + 12 * this.ratio, size * 1.6);
    this.context.globalAlpha = 1;
  }

  drawHovered() {
    if (!this.hovered) return;
    const offset = this.hovered.cell - this.hovered.strip.cell;
    const left = (offset % this.picture.columns - this.x) * this.scale;
    const top = (this.hovered.strip.row + Math.floor(offset / this.picture.columns) - this.y) * this.scale;
    this.context.strokeStyle = styled("--ink");
    this.context.lineWidth = 2 * this.ratio;
    this.context.strokeRect(left - this.ratio, top - this.ratio, Math.max(this.scale, 2) + 2 * this.ratio, Math.max(this.scale, 2) + 2 * this.ratio);
  }
}
