(function () {
  "use strict";

  var data = JSON.parse(document.getElementById("charts").textContent);
  var colours = data.allocators.map(function (one) { return "var(--c-" + one.colour + ")"; });
  var names = data.allocators.map(function (one) { return one.name; });
  var dashes = data.allocators.map(function (one) { return one.dashed ? [6, 3] : [1, 0]; });
  var font = getComputedStyle(document.body).fontFamily;
  // Colours are the page's variables: dark mode and print need no redrawing.
  var config = {
    font: font, aria: false,
    view: { stroke: null },
    axis: { labelColor: "var(--muted)", titleColor: "var(--muted)", titleFontWeight: 400, labelFontSize: 11.5, titleFontSize: 11.5, gridColor: "var(--grid)",
      domainColor: "var(--line)", tickColor: "var(--line)", labelFont: font, titleFont: font, titlePadding: 8, labelFlush: false },
    text: { font: font }
  };
  var hidden = [];
  var views = [];
  var tip = document.getElementById("tip");

  download();
  var places = Array.prototype.slice.call(document.querySelectorAll("[data-chart]"));
  if (places.length === 0) { finish(); return; }

  places.reduce(function (before, place) {
    return before.then(function () { return draw(place); });
  }, Promise.resolve()).then(legend).then(finish).catch(function (error) {
    var notice = document.getElementById("failure");
    notice.textContent = "The charts could not be drawn (" + error.message + "); the tables have the same values.";
    notice.hidden = false;
    document.documentElement.dataset.charts = "failed";
  });

  function finish() { document.documentElement.dataset.charts = "drawn"; }

  function draw(place) {
    var workload = data.workloads[place.dataset.workload];
    var metric = workload.metrics[place.dataset.metric];
    var spec = { curves: curves, bars: bars }[place.dataset.chart](metric || workload.curves, place);
    spec.params = (spec.params || []).concat({ name: "hidden", value: hidden });
    spec.transform = [{ filter: "indexof(hidden, datum.allocator) < 0" }];
    spec.config = config;
    spec.width = "container";
    spec.autosize = { type: "fit-x", contains: "padding" };
    spec.background = null;
    var view = new vega.View(vega.parse(vegaLite.compile(spec).spec), { renderer: "svg", container: place, logLevel: vega.Warn });
    view.tooltip(function (_handler, event, _item, value) { show(event, value); });
    views.push(view);
    return view.runAsync().then(function () { if (place.dataset.chart === "curves") { readout(place, view, workload.curves); } });
  }

  // ---- specifications ----

  function colour() {
    return { field: "allocator", type: "nominal", scale: { domain: names, range: colours }, legend: null };
  }

  function dash() {
    return { field: "allocator", type: "nominal", scale: { domain: names, range: dashes }, legend: null };
  }

  function rows(values) {
    return { field: "allocator", type: "nominal", sort: null, scale: { domain: values.map(function (one) { return one.allocator; }), paddingInner: 0.4, paddingOuter: 0.2 },
      axis: { title: null, ticks: false, domain: false, labelPadding: 10, labelLimit: 150, labelColor: "var(--ink)", labelFontSize: 12 } };
  }

  function curves(plot, place) {
    var values = [];
    plot.series.forEach(function (series) {
      series.seconds.forEach(function (at, index) {
        values.push({ allocator: series.allocator, run: series.run, median: series.median, at: at, value: series.values[index] });
      });
    });
    // Fixed, so that hiding a curve keeps the axes.
    var ends = { at: 0, value: 0 };
    values.forEach(function (one) { ends.at = Math.max(ends.at, one.at); ends.value = Math.max(ends.value, one.value); });
    var encoding = {
      x: { field: "at", type: "quantitative", scale: { domain: [0, ends.at || 1], nice: false }, axis: { title: "seconds", grid: false, tickCount: place.clientWidth < 500 ? 5 : 10 } },
      y: { field: "value", type: "quantitative", scale: { domain: [0, ends.value || 1], nice: 5 }, axis: { title: null, tickCount: 5 } },
      color: colour(), strokeDash: dash(), detail: { field: "run" }
    };
    return { data: { values: values }, height: place.clientWidth < 500 ? 240 : 340, layer: [
      { transform: [{ filter: "!datum.median" }], mark: { type: "line", strokeWidth: 1, opacity: 0.4 }, encoding: encoding },
      { transform: [{ filter: "datum.median" }], mark: { type: "line", strokeWidth: 2.4, strokeJoin: "round" }, encoding: encoding }
    ] };
  }

  function bars(metric, place) {
    // The scale ends where the longest bar leaves room for its figure.
    var room = Math.max(place.clientWidth - 160, 80);
    var greatest = Math.max.apply(null, metric.bars.map(function (bar) {
      return Math.max(bar.median, bar.high || 0) * room / Math.max(room - 16 - 8 * bar.text.length, room / 3);
    }));
    var y = rows(metric.bars);
    var x = { type: "quantitative", scale: { domain: [0, greatest > 0 ? greatest : 1], nice: false }, axis: { title: null, tickCount: 4, domain: false, ticks: false } };
    var layers = [
      { mark: { type: "bar", cornerRadiusEnd: 2, opacity: 0.9 }, encoding: { y: y, x: field(x, "median"), color: colour(), tooltip: { field: "tip" } } },
      interval({ type: "rule", strokeWidth: 4, stroke: "var(--paper)", opacity: 0.85 }, { y: y, x: field(x, "low"), x2: { field: "high" } }),
      interval({ type: "rule", strokeWidth: 1.5, stroke: "var(--ink)" }, { y: y, x: field(x, "low"), x2: { field: "high" } }),
      interval({ type: "tick", size: 8, thickness: 1.5, color: "var(--ink)" }, { y: y, x: field(x, "low") }),
      interval({ type: "tick", size: 8, thickness: 1.5, color: "var(--ink)" }, { y: y, x: field(x, "high") }),
      { mark: { type: "text", align: "left", dx: 9, fill: "var(--ink)", fontSize: 12 }, encoding: { y: y, x: field(x, "end"), text: { field: "text" } } }
    ];
    var values = metric.bars.map(function (bar) {
      return Object.assign({}, bar, { end: Math.max(bar.median, bar.high || 0),
        tip: bar.allocator + ": " + bar.full + (metric.unit === "/s" ? "" : " ") + metric.unit });
    });
    return frame(values, layers);
  }

  function interval(mark, encoding) {
    return { transform: [{ filter: "isValid(datum.low) && isValid(datum.high)" }], mark: mark, encoding: encoding };
  }

  // One row per allocator; a hidden allocator leaves its row empty.
  function frame(values, layers) {
    return { data: { values: values }, height: values.length * 28, padding: { left: 0, top: 2, right: 4, bottom: 2 }, layer: layers };
  }

  function field(channel, name) { return Object.assign({ field: name }, channel); }

  // ---- interaction ----

  function legend() {
    var bar = document.getElementById("legend");
    if (!bar || names.length < 2) { return; }
    bar.hidden = false;
    bar.addEventListener("click", function (event) {
      var button = event.target.closest("button");
      if (!button) { return; }
      var pressed = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", String(!pressed));
      hidden = pressed ? hidden.concat(button.dataset.allocator) : hidden.filter(function (name) { return name !== button.dataset.allocator; });
      views.forEach(function (view) { view.signal("hidden", hidden).runAsync(); });
    });
  }

  // The values of the median runs at the pointer's time.
  function readout(place, view, plot) {
    var medians = plot.series.filter(function (series) { return series.median; });
    var cursor = document.createElement("div");
    cursor.className = "cursor";
    cursor.hidden = true;
    place.appendChild(cursor);
    place.addEventListener("pointerleave", function () { cursor.hidden = true; show(null, null); });
    place.addEventListener("pointermove", function (event) {
      var left = event.clientX - place.getBoundingClientRect().left;
      var at = view.scale("x").invert(left - view.origin()[0]);
      var domain = view.scale("x").domain();
      if (at < domain[0] || at > domain[1]) { cursor.hidden = true; show(null, null); return; }
      cursor.hidden = false;
      cursor.style.left = left + "px";
      cursor.style.top = view.origin()[1] + "px";
      cursor.style.height = view.height() + "px";
      var lines = medians.filter(function (series) { return hidden.indexOf(series.allocator) < 0; }).map(function (series) {
        var value = valueAt(series, at);
        return { value: value, text: series.allocator + "  " + (value === null ? "ended" : number(value) + " " + plot.unit) };
      }).sort(function (one, other) { return (other.value || 0) - (one.value || 0); }).map(function (line) { return line.text; });
      show(event, at.toFixed(2) + " s\n" + lines.join("\n"));
    });
  }

  function valueAt(series, at) {
    if (at > series.seconds[series.seconds.length - 1]) { return null; }
    var index = series.seconds.findIndex(function (time) { return time >= at; });
    return series.values[Math.max(index, 0)];
  }

  function number(value) { return value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3); }

  function show(event, text) {
    tip.hidden = !text;
    if (!text) { return; }
    tip.textContent = text;
    var box = tip.getBoundingClientRect();
    var left = event.clientX + 16 + box.width > window.innerWidth ? event.clientX - 16 - box.width : event.clientX + 16;
    tip.style.left = Math.max(left, 4) + "px";
    tip.style.top = Math.max(Math.min(event.clientY + 12, window.innerHeight - box.height - 4), 4) + "px";
  }

  function download() {
    var button = document.getElementById("download");
    button.hidden = false;
    button.addEventListener("click", function () {
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([document.getElementById("document").textContent], { type: "application/json" }));
      link.download = button.dataset.name;
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
  }
}());
