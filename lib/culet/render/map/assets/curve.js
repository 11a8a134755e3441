// The line chart of figures over time, from the data element "curve".

const CURVE = { width: 300, height: 120, left: 46, right: 6, top: 6, foot: 16 };
// The second and the third, of shared and private memory, are near the colours of SHARINGS for shared and unshared.
const CURVE_COLOURS = ["var(--ink)", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#0072b2"];

class Curve {
  // lines: [{ name, points: [[seconds, bytes], ...] }].
  constructor(lines) {
    this.lines = lines;
    const points = lines.flatMap((line) => line.points);
    this.end = Math.max(...points.map(([seconds]) => seconds), 1e-3);
    this.highest = Curve.ceiling(Math.max(...points.map(([, bytes]) => bytes), 1));
  }

  // The next 1, 2 or 5 times a power of ten, for the axis.
  static ceiling(bytes) {
    const power = 10 ** Math.floor(Math.log10(bytes));
    return [1, 2, 5, 10].map((step) => step * power).find((one) => one >= bytes);
  }

  x(seconds) { return CURVE.left + (CURVE.width - CURVE.left - CURVE.right) * seconds / this.end; }

  y(bytes) { return CURVE.top + (CURVE.height - CURVE.top) * (1 - bytes / this.highest); }

  colour(index) { return CURVE_COLOURS[index % CURVE_COLOURS.length]; }

  svg() {
    const svg = drawn("svg", { viewBox: `0 0 ${CURVE.width} ${CURVE.height + CURVE.foot}`, role: "img", "aria-label": this.words() });
    for (const part of [0, 0.5, 1]) {
      const y = this.y(part * this.highest);
      svg.append(drawn("line", { x1: CURVE.left, x2: CURVE.width - CURVE.right, y1: y, y2: y, stroke: "var(--line)" }),
        this.label(size(part * this.highest), CURVE.left - 4, y + 3, "end"));
    }
    svg.append(this.label("0 s", CURVE.left, CURVE.height + CURVE.foot - 4, "start"),
      this.label(`${this.end.toFixed(this.end < 10 ? 1 : 0)} s`, CURVE.width - CURVE.right, CURVE.height + CURVE.foot - 4, "end"));
    this.lines.forEach((line, index) => svg.append(this.line(line, index)));
    return svg;
  }

  line({ name, points }, index) {
    const path = points.map(([seconds, bytes]) => `${this.x(seconds).toFixed(1)},${this.y(bytes).toFixed(1)}`).join(" ");
    return drawn("polyline", { points: path, fill: "none", stroke: this.colour(index), "stroke-width": 1.5, "stroke-linejoin": "round", "data-line": name },
      drawn("title", {}, name));
  }

  // The legend: names and last values.
  items() {
    return this.lines.map(({ name, points }, index) => {
      const last = points[points.length - 1][1];
      return element("li", {}, element("label", {}, swatch(this.colour(index)), name), element("span", { className: "figure", "data-bytes": last }, size(last)));
    });
  }

  words() { return this.lines.map(({ name, points }) => `${name}: from ${size(points[0][1])} to ${size(points[points.length - 1][1])}`).join("; "); }

  label(text, x, y, anchor) { return drawn("text", { x, y, "text-anchor": anchor }, text); }
}

// Shows the chart, if the page has one.
async function showCurve(root) {
  if (!document.getElementById("curve")) return;
  const { title, lines } = await unpackJson("curve");
  const curve = new Curve(lines);
  root.querySelector("[data-part=curve-title]").textContent = title;
  root.querySelector("[data-part=curve]").replaceChildren(curve.svg());
  root.querySelector("[data-part=curve-lines]").replaceChildren(...curve.items());
  root.querySelector("[data-part=curve]").closest("section").hidden = false;
}
