// A chart over time: areas on top of each other, or lines. uPlot draws it; the axes, events and the chosen moment are ours.

// Events stand above the plot.
const LANE = 18;
const NEAR_PIXELS = 6;
const TIMES_HEIGHT = 30;
// Pixels from one time to the next, at least.
const TIMES_SPACE = 82;
const AXIS_WIDTH = 74;

class Chart {
  // hover: called with an index into the points, or null; pick: called with an index that was clicked.
  constructor(root, { stacked, sync, hover, pick, tip }) {
    Object.assign(this, { root, stacked, sync, hover, pick, tip, events: [], plot: null });
    new ResizeObserver(() => this.resize()).observe(root);
    root.addEventListener("mousemove", (event) => this.point(event));
    root.addEventListener("mouseleave", () => this.tip.show(null));
    DARK.addEventListener("change", () => this.rebuild());
  }

  // times: seconds; series: { title, values, colour, dark, dash }, the lowest of a stack first; limit: bytes or null;
  // range: first and last second; chosen: seconds or null; events: { at, kind, text }.
  show({ times, series, range, chosen, events, limit }) {
    Object.assign(this, { times, range, chosen, events: events || [], limit });
    const shape = JSON.stringify(series.map(({ title, colour, dash }) => [title, colour, dash]));
    this.series = series;
    this.data = [times, ...this.drawn(series)];
    if (!this.plot || shape !== this.shape) {
      this.shape = shape;
      this.rebuild();
    } else {
      this.plot.batch(() => {
        this.plot.setData(this.data, false);
        this.plot.setScale("x", { min: range[0], max: range[1] });
      });
    }
  }

  // Areas are drawn from the top of the stack down: each covers what is above the next one.
  drawn(series) {
    if (!this.stacked) return series.map((one) => one.values);
    const sums = new Float64Array(this.times.length);
    return series.map((one) => {
      one.values.forEach((value, at) => { sums[at] += Math.max(0, value || 0); });
      return Array.from(sums);
    }).reverse();
  }

  rebuild() {
    if (!this.data) return;
    if (this.plot) this.plot.destroy();
    this.plot = new uPlot(this.options(), this.data, this.root);
    this.plot.setScale("x", { min: this.range[0], max: this.range[1] });
    const over = this.plot.over;
    over.addEventListener("click", () => { if (known(this.plot.cursor.idx)) this.pick(this.plot.cursor.idx); });
    over.addEventListener("mouseleave", () => this.hover(null));
  }

  resize() {
    if (this.plot) this.plot.setSize(this.size());
  }

  size() { return { width: Math.max(200, this.root.clientWidth), height: Math.max(120, this.root.clientHeight) }; }

  options() {
    const axis = { stroke: styled("--muted"), grid: { stroke: styled("--line"), width: 1 }, ticks: { stroke: styled("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const order = this.stacked ? [...this.series].reverse() : this.series;
    return {
      ...this.size(), legend: { show: false }, padding: [this.stacked ? LANE : 8, 26, 0, 0],
      cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { show: !this.stacked, size: 6 }, sync: { key: this.sync, scales: ["x", null] } },
      scales: { x: { time: true, auto: false }, y: { range: (plot, low, high) => [0, Math.max(high || 0, this.limit || 0, 1) * 1.04] } },
      axes: [{ ...axis, size: TIMES_HEIGHT, space: TIMES_SPACE, values: (plot, splits, number, space, step) => this.ticks(splits, step) }, { ...axis, size: AXIS_WIDTH, values: (plot, splits) => splits.map((value) => bytesText(value)) }],
      series: [{}, ...order.map((one) => this.line(one))],
      hooks: { draw: [(plot) => this.decorate(plot)], setCursor: [(plot) => { if (plot.cursor.event) this.hover(plot.cursor.idx); }] },
    };
  }

  ticks(splits, step) {
    return splits.map((at) => (step < 60 ? clock(at) : clock(at).slice(0, 5)));
  }

  line(one) {
    const colour = themed(one);
    if (this.stacked) return { label: one.title, stroke: styled("--paper"), width: 0.5, fill: colour, points: { show: false } };
    return { label: one.title, stroke: colour, width: 1.6, dash: one.dash, points: { show: false } };
  }

  // The chosen moment as a line, events as pins.
  decorate(plot) {
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    for (const event of this.events) {
      const left = Math.round(plot.valToPos(event.at, "x", true));
      if (left < bbox.left || left > bbox.left + bbox.width) continue;
      ctx.fillStyle = themed(eventKind(event));
      ctx.beginPath();
      ctx.moveTo(left - 4 * ratio, bbox.top - 11 * ratio);
      ctx.lineTo(left + 4 * ratio, bbox.top - 11 * ratio);
      ctx.lineTo(left, bbox.top - 2 * ratio);
      ctx.fill();
    }
    if (known(this.chosen)) this.drawChosen(plot, ratio);
    if (this.limit) this.drawLimit(plot, ratio);
  }

  drawLimit(plot, ratio) {
    const { ctx, bbox } = plot;
    const top = Math.round(plot.valToPos(this.limit, "y", true));
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = styled("--alarm");
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, top);
    ctx.lineTo(bbox.left + bbox.width, top);
    ctx.stroke();
    ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.fillText("limit", bbox.left + 6 * ratio, top + 13 * ratio);
    ctx.restore();
  }

  drawChosen(plot, ratio) {
    const { ctx, bbox } = plot;
    const left = Math.round(plot.valToPos(this.chosen, "x", true));
    if (left < bbox.left || left > bbox.left + bbox.width) return;
    ctx.save();
    ctx.fillStyle = styled("--ink");
    ctx.fillRect(left - 0.5 * ratio, bbox.top, ratio, bbox.height);
    ctx.restore();
  }

  // The events near the pointer, as a tooltip.
  point(event) {
    if (!this.plot) return;
    const box = this.plot.over.getBoundingClientRect();
    const left = event.clientX - box.left;
    const near = event.clientY < box.top + 4 ? this.events.filter((one) => Math.abs(this.plot.valToPos(one.at, "x") - left) <= NEAR_PIXELS) : [];
    this.tip.show(near.length ? near.slice(0, 8).map((one) => `${clock(one.at)}${known(one.pid) ? ` process ${one.pid}` : ""}: ${one.text}`) : null, event);
  }
}
