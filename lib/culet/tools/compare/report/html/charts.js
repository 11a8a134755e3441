// The charts of a comparison, which Vega draws.

const data = JSON.parse(document.getElementById("charts").textContent);
const names = data.allocators.map((one) => one.name);
// Colours are the page's variables: dark mode and print need no redrawing.
const colour = channel(data.allocators.map((one) => `var(--c-${one.colour})`));
const dash = channel(data.allocators.map((one) => one.dashed ? [6, 3] : [1, 0]));
const font = getComputedStyle(document.body).fontFamily;
const config = {
  font, aria: false,
  view: { stroke: null },
  axis: { labelColor: "var(--muted)", titleColor: "var(--muted)", titleFontWeight: 400, labelFontSize: 11.5, titleFontSize: 11.5, gridColor: "var(--grid)",
    domainColor: "var(--line)", tickColor: "var(--line)", labelFont: font, titleFont: font, titlePadding: 8, labelFlush: false },
  text: { font }
};
const tip = new Tip(document.getElementById("tip"));
const views = [];
let hidden = [];

download();
startPage("charts", "charts", async () => {
  for (const place of document.querySelectorAll("[data-chart]")) await draw(place);
  legend();
}, "The tables have the same values.");

async function draw(place) {
  const workload = data.workloads[place.dataset.workload];
  const curved = place.dataset.chart === "curves";
  const spec = {
    ...(curved ? curves(workload.curves, place) : bars(workload.metrics[place.dataset.metric], place)),
    params: [{ name: "hidden", value: hidden }],
    transform: [{ filter: "indexof(hidden, datum.allocator) < 0" }],
    config, width: "container", autosize: { type: "fit-x", contains: "padding" }, background: null
  };
  const view = new vega.View(vega.parse(vegaLite.compile(spec).spec), { renderer: "svg", container: place, logLevel: vega.Warn });
  view.tooltip((_handler, event, _item, text) => tip.show(text && [text], event));
  views.push(view);
  await view.runAsync();
  if (curved) readout(place, view, workload.curves);
}

// ---- specifications ----

function channel(range) { return { field: "allocator", type: "nominal", scale: { domain: names, range }, legend: null }; }

function curves(plot, place) {
  const values = plot.series.flatMap(({ allocator, run, median, seconds, values }) =>
    seconds.map((at, index) => ({ allocator, run, median, at, value: values[index] })));
  // Fixed, so that hiding a curve keeps the axes.
  const ends = { at: 0, value: 0 };
  for (const one of values) {
    ends.at = Math.max(ends.at, one.at);
    ends.value = Math.max(ends.value, one.value);
  }
  const narrow = place.clientWidth < 500;
  const encoding = {
    x: { field: "at", type: "quantitative", scale: { domain: [0, ends.at || 1], nice: false }, axis: { title: "seconds", grid: false, tickCount: narrow ? 5 : 10 } },
    y: { field: "value", type: "quantitative", scale: { domain: [0, ends.value || 1], nice: 5 }, axis: { title: null, tickCount: 5 } },
    color: colour, strokeDash: dash, detail: { field: "run" }
  };
  return { data: { values }, height: narrow ? 240 : 340, layer: [
    { transform: [{ filter: "!datum.median" }], mark: { type: "line", strokeWidth: 1, opacity: 0.4 }, encoding },
    { transform: [{ filter: "datum.median" }], mark: { type: "line", strokeWidth: 2.4, strokeJoin: "round" }, encoding }
  ] };
}

// One row per allocator; a hidden allocator leaves its row empty.
function bars(metric, place) {
  const values = metric.bars.map((bar) => ({ ...bar, end: Math.max(bar.median, bar.high || 0),
    tip: `${bar.allocator}: ${bar.full}${metric.unit === "/s" ? "" : " "}${metric.unit}` }));
  // The scale ends where the longest bar leaves room for its figure.
  const room = Math.max(place.clientWidth - 160, 80);
  const greatest = Math.max(...values.map((bar) => bar.end * room / Math.max(room - 16 - 8 * bar.text.length, room / 3)));
  const y = { field: "allocator", type: "nominal", sort: null, scale: { domain: values.map((bar) => bar.allocator), paddingInner: 0.4, paddingOuter: 0.2 },
    axis: { title: null, ticks: false, domain: false, labelPadding: 10, labelLimit: 150, labelColor: "var(--ink)", labelFontSize: 12 } };
  const scaled = { type: "quantitative", scale: { domain: [0, greatest > 0 ? greatest : 1], nice: false }, axis: { title: null, tickCount: 4, domain: false, ticks: false } };
  const x = (field) => ({ field, ...scaled });
  const interval = (mark, encoding) => ({ transform: [{ filter: "isValid(datum.low) && isValid(datum.high)" }], mark, encoding: { y, ...encoding } });
  const tick = { type: "tick", size: 8, thickness: 1.5, color: "var(--ink)" };
  return { data: { values }, height: values.length * 28, padding: { left: 0, top: 2, right: 4, bottom: 2 }, layer: [
    { mark: { type: "bar", cornerRadiusEnd: 2, opacity: 0.9 }, encoding: { y, x: x("median"), color: colour, tooltip: { field: "tip" } } },
    interval({ type: "rule", strokeWidth: 4, stroke: "var(--paper)", opacity: 0.85 }, { x: x("low"), x2: { field: "high" } }),
    interval({ type: "rule", strokeWidth: 1.5, stroke: "var(--ink)" }, { x: x("low"), x2: { field: "high" } }),
    interval(tick, { x: x("low") }),
    interval(tick, { x: x("high") }),
    { mark: { type: "text", align: "left", dx: 9, fill: "var(--ink)", fontSize: 12 }, encoding: { y, x: x("end"), text: { field: "text" } } }
  ] };
}

// ---- interaction ----

function legend() {
  const bar = document.getElementById("legend");
  if (!bar || names.length < 2) return;
  bar.hidden = false;
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const pressed = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!pressed));
    hidden = pressed ? [...hidden, button.dataset.allocator] : hidden.filter((name) => name !== button.dataset.allocator);
    for (const view of views) view.signal("hidden", hidden).runAsync();
  });
}

// The values of the median runs at the pointer's time.
function readout(place, view, plot) {
  const medians = plot.series.filter((series) => series.median);
  const cursor = element("div", { className: "cursor", hidden: true });
  place.append(cursor);
  const leave = () => {
    cursor.hidden = true;
    tip.show(null);
  };
  place.addEventListener("pointerleave", leave);
  place.addEventListener("pointermove", (event) => {
    const left = event.clientX - place.getBoundingClientRect().left;
    const at = view.scale("x").invert(left - view.origin()[0]);
    const [first, last] = view.scale("x").domain();
    if (at < first || at > last) return leave();
    cursor.hidden = false;
    Object.assign(cursor.style, { left: `${left}px`, top: `${view.origin()[1]}px`, height: `${view.height()}px` });
    const lines = medians.filter((series) => !hidden.includes(series.allocator))
      .map((series) => ({ name: series.allocator, value: valueAt(series, at) }))
      .sort((one, other) => (other.value || 0) - (one.value || 0))
      .map(({ name, value }) => `${name}: ${value === null ? "ended" : `${significant(value)} ${plot.unit}`}`);
    tip.show([`${at.toFixed(2)} s`, ...lines], event);
  });
}

function valueAt(series, at) {
  const index = series.seconds.findIndex((time) => time >= at);
  return index < 0 ? null : series.values[index];
}

function download() {
  const button = document.getElementById("download");
  button.hidden = false;
  button.addEventListener("click", () => {
    const href = URL.createObjectURL(new Blob([document.getElementById("document").textContent], { type: "application/json" }));
    element("a", { href, download: button.dataset.name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
}
