var ROW = 18, LEAST = 0.7; // pixels; narrower bars are omitted
var data = JSON.parse(document.getElementById("data").textContent);
// As Flame::FIGURES: title, unit, its value, decimals.
var FIGURES = [["time", "ms", 1e-3, 1], ["processor time", "ms", 1e-3, 1], ["memory retained", "MB", 1e6, 2], ["compiled code", "MB", 1e6, 2],
  ["malloc", "MB", 1e6, 2], ["objects", "", 1, 0], ["file-system lookups", "", 1, 0], ["failed lookups", "", 1, 0]];
var FIRST = 5; // index of a row's first figure
var graph = document.getElementById("graph"), told = document.getElementById("told"), choice = document.getElementById("figure");
var whole = document.getElementById("whole"), find = document.getElementById("find");
var nodes = data.rows.map(function (row, number) { return { number: number, row: row, children: [], depth: 0 }; });
var root = { number: -1, row: [-1, "all requires", -1, null, null], children: [], depth: 0 };
FIGURES.forEach(function () { root.row.push(0); });
nodes.forEach(function (node) {
  node.up = node.row[0] < 0 ? root : nodes[node.row[0]];
  node.up.children.push(node);
});
var known = FIGURES.map(function (_, at) { return data.rows.some(function (row) { return row[FIRST + at] !== null; }); });
var shown = root, at = 0, chosen;

// Children follow their requirer: the backward loop sums each before its parent.
function sums(figure) {
  root.total = 0;
  nodes.forEach(function (node) { node.own = node.row[FIRST + figure] || 0; node.total = node.own; });
  for (var i = nodes.length - 1; i >= 0; i--) { nodes[i].up.total += nodes[i].total; }
}

function number(value, decimals) {
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

function amount(value, figure) {
  var one = FIGURES[figure];
  return number(value / one[2], one[3]) + (one[1] ? " " + one[1] : "");
}

// Light enough for dark text, and at least 23 apart in CIE 1976 L*a*b*.
var COLOURS = ["#78b4e4", "#6ca83c", "#e4843c", "#fc6ca8", "#3cf0cc", "#b484f0", "#e4d890", "#cc8484", "#fcc0fc", "#6ca884", "#fc6c6c", "#3ce4fc",
  "#609cfc", "#b49060", "#e4b448", "#78e490", "#c0cc54", "#9c90cc", "#fca884", "#fc90e4"];

// Gems with adjacent bars in any figure.
function neighbours() {
  var sets = data.gems.map(function () { return new Set(); });
  function meet(one, other) {
    var left = one.row[2], right = other.row[2];
    if (left < 0 || right < 0 || left === right) { return; }
    sets[left].add(right);
    sets[right].add(left);
  }
  nodes.forEach(function (node) { meet(node, node.up); });
  FIGURES.forEach(function (_, figure) {
    if (!known[figure]) { return; }
    sums(figure);
    [root].concat(nodes).forEach(function (node) {
      var list = inOrder(node);
      for (var i = 1; i < list.length; i++) { meet(list[i - 1], list[i]); }
    });
  });
  return sets;
}

// Greedy colouring: gems with most neighbours first, each with the least used colour that no neighbour has. The search
// starts at a hash of the name, so that a gem has the same colour on most pages.
function paint() {
  var sets = neighbours(), chosen = data.gems.map(function () { return null; }), uses = COLOURS.map(function () { return 0; });
  data.gems.map(function (_, gem) { return gem; }).sort(function (a, b) { return sets[b].size - sets[a].size; }).forEach(function (gem) {
    var taken = COLOURS.map(function () { return 0; }), hash = 0, name = data.gems[gem].replace(/ .*/, ""), best = -1;
    sets[gem].forEach(function (other) { if (chosen[other] !== null) { taken[chosen[other]]++; } });
    for (var i = 0; i < name.length; i++) { hash = (hash * 31 + name.charCodeAt(i)) >>> 0; }
    for (i = 0; i < COLOURS.length; i++) {
      var one = (hash + i) % COLOURS.length;
      if (best < 0 || taken[one] < taken[best] || (taken[one] === taken[best] && uses[one] < uses[best])) { best = one; }
    }
    chosen[gem] = best;
    uses[best]++;
  });
  return chosen;
}

// Grey without a gem.
function colour(gem) { return gem < 0 ? "#c7cad1" : COLOURS[chosen[gem]]; }

function inOrder(node) { return node.children.slice().sort(function (a, b) { return b.total - a.total; }); }

function box(node, left, width, depth, words) {
  var div = document.createElement("div");
  div.style.left = left + "px";
  div.style.top = depth * ROW + "px";
  div.style.width = Math.max(width, 1) + "px";
  div.style.background = colour(node.row[2]);
  if (width < 26) { div.className = "narrow"; } else { div.textContent = words; }
  if (node.row[4]) { div.classList.add("failed"); }
  if (wanted(node)) { div.classList.add("found"); }
  div.dataset.number = node.number;
  graph.appendChild(div);
  return div;
}

function wanted(node) {
  var word = find.value.trim().toLowerCase();
  return word !== "" && [node.row[1], node.row[3], data.gems[node.row[2]]].some(function (text) { return text && text.toLowerCase().includes(word); });
}

function draw() {
  var deepest = 0, width = graph.clientWidth;
  graph.textContent = "";
  graph.classList.toggle("finding", find.value.trim() !== "");
  sums(at);
  var above = [];
  for (var up = shown; up; up = up.up) { above.unshift(up); }
  above.forEach(function (node, depth) { box(node, 0, width, depth, label(node)); });
  var level = above.length;
  function place(node, left, scale, depth) {
    inOrder(node).forEach(function (child) {
      var wide = child.total * scale;
      if (wide < LEAST) { return; }
      deepest = Math.max(deepest, depth);
      box(child, left, wide, depth, label(child));
      place(child, left, scale, depth + 1);
      left += wide;
    });
  }
  place(shown, 0, shown.total > 0 ? width / shown.total : 0, level);
  graph.style.height = (Math.max(deepest, level - 1) + 1) * ROW + "px";
  whole.disabled = shown === root;
  document.documentElement.dataset.flame = "drawn";
}

function label(node) {
  return node.row[1].replace(/^.*\/(gems|ruby)\//, "") + (node.row[4] ? " [" + node.row[4] + "]" : "") + "  " + amount(node.total, at);
}

function tell(node) {
  told.textContent = "";
  var name = document.createElement("b");
  name.textContent = node.row[3] || node.row[1];
  told.appendChild(name);
  var words = node.number < 0 ? "" : " (" + data.gems[node.row[2]] + (node.row[4] ? ", " + node.row[4] : "") + ")";
  words += ": " + amount(node.total, at) + " in total";
  if (node.number >= 0) {
    words += "; own: " + FIGURES.map(function (one, figure) {
      return known[figure] ? one[0] + " " + amount(node.row[FIRST + figure] || 0, figure) : null;
    }).filter(Boolean).join(", ");
  }
  told.appendChild(document.createTextNode(words));
}

function cell(row, kind, text) {
  var made = document.createElement(kind);
  made.textContent = text;
  row.appendChild(made);
  return made;
}

function gems() {
  var table = document.getElementById("gems"), list = data.gems.map(function (name, gem) { return { name: name, gem: gem, files: 0, sums: FIGURES.map(function () { return 0; }) }; });
  data.rows.forEach(function (row) {
    list[row[2]].files++;
    FIGURES.forEach(function (_, figure) { list[row[2]].sums[figure] += row[FIRST + figure] || 0; });
  });
  table.textContent = "";
  var head = table.createTHead().insertRow();
  cell(head, "th", "gem");
  cell(head, "th", "files");
  FIGURES.forEach(function (one, figure) { if (known[figure]) { cell(head, "th", one[0] + (one[1] ? ", " + one[1] : "")).className = figure === at ? "" : "unchosen"; } });
  var body = table.createTBody();
  list.sort(function (a, b) { return b.sums[at] - a.sums[at]; }).forEach(function (one) {
    var row = body.insertRow(), first = cell(row, "td", ""), swatch = document.createElement("i");
    swatch.style.background = colour(one.gem);
    first.appendChild(swatch);
    first.appendChild(document.createTextNode(one.name));
    cell(row, "td", number(one.files, 0));
    one.sums.forEach(function (sum, figure) { if (known[figure]) { cell(row, "td", number(sum / FIGURES[figure][2], FIGURES[figure][3])).className = figure === at ? "" : "unchosen"; } });
  });
}

function node(event) {
  var number = event.target.dataset ? event.target.dataset.number : undefined;
  return number === undefined ? null : number === "-1" ? root : nodes[number];
}

function show(one) { shown = one; draw(); }

FIGURES.forEach(function (one, figure) {
  if (known[figure]) { choice.appendChild(new Option(one[0], figure)); }
});
choice.addEventListener("change", function () { at = Number(choice.value); draw(); gems(); });
find.addEventListener("input", draw);
whole.addEventListener("click", function () { show(root); });
document.addEventListener("keydown", function (event) { if (event.key === "Escape") { find.value = ""; show(root); } });
graph.addEventListener("mousemove", function (event) { var one = node(event); if (one) { tell(one); } });
graph.addEventListener("click", function (event) { var one = node(event); if (one) { show(one); tell(one); } });
window.addEventListener("resize", draw);
chosen = paint();
draw();
gems();
