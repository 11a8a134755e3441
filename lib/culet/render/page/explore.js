// Shared by pages that explore memory: a search field, a canvas with nodes, and parts of tables.

class Find {
  // onWord(word): the text of #matches for a word in lower case; "" ends the search
  // onEscape(): Escape without a search
  constructor(onWord, onEscape) {
    Object.assign(this, { onWord, onEscape });
    this.field = document.getElementById("find");
    this.output = document.getElementById("matches");
    this.field.addEventListener("input", () => this.search());
    document.addEventListener("keydown", (event) => this.press(event));
  }

  look(word) {
    this.field.value = word;
    this.search();
  }

  search() { this.output.textContent = this.onWord(this.field.value.trim().toLowerCase()); }

  press(event) {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox" && event.target.type !== "radio";
    if (event.key === "/" && !typing) {
      this.field.focus();
      event.preventDefault();
    } else if (event.key === "Escape") {
      if (this.field.value === "") this.onEscape();
      else this.look("");
    }
  }
}

function swatch(colour) { return element("i", { className: "swatch", style: `background:${colour}` }); }

// Text that may break behind punctuation.
function breakable(text) {
  return text.split(/(?<=[/:#.-])(?=[^/:#.-])/).flatMap((part) => [element("wbr"), part]).slice(1);
}

// The text for the canvas, shortened to the room with an ellipsis.
function fitted(context, text, room) {
  const whole = context.measureText(text).width;
  if (whole <= room) return text;
  let length = Math.floor(text.length * room / whole);
  while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > room) length--;
  return length > 1 ? `${text.slice(0, length)}…` : "";
}

// The first cell of a row; the bar's length is `part` of the cell's width.
function nameCell(part, ...content) {
  return element("td", { className: "name" }, ...content, element("i", { className: "bar", style: `width:${(100 * part).toFixed(1)}%` }));
}

// A button that shows all rows of a table or the first ones again; none where these are all.
function rowsButton(count, few, all, attributes) {
  if (count <= few) return [];
  return [element("button", { type: "button", className: "quiet", ...attributes }, all ? `Show the first ${few}` : `Show all ${grouped(count)}`)];
}

// The style sheet's colours for a canvas; read again when the theme has changed.
class CanvasColours {
  constructor() { this.read(); }

  read() {
    for (const name of ["paper", "ink", "focus", "rest", "found"]) this[name] = styled(`--${name}`);
    this.onBox = styled("--on-box");
    this.font = `12px ${styled("--sans")}`;
  }
}

// A canvas with the nodes of a WeighedTree, `nodes`, which has describe(node), the lines of the tooltip. A subclass has
// draw(), at(x, y), the node at a position (-1: none), select(node), zoom(node) and click(node).
class NodeCanvas {
  // root: has the focus; place: gets the canvas
  constructor(root, place, colours) {
    Object.assign(this, { root, colours, canvas: element("canvas"), zoomed: 0, selected: 0, hovered: -1, found: null });
    this.tip = new Tip(document.getElementById("tip"));
    place.append(this.canvas);
    this.context = this.canvas.getContext("2d");
    root.addEventListener("focus", () => this.draw());
    root.addEventListener("blur", () => this.draw());
    root.addEventListener("keydown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.under(event), event));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => this.click(this.under(event)));
    DARK.addEventListener("change", () => {
      colours.read();
      this.draw();
    });
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.at(event.clientX - box.left, event.clientY - box.top);
  }

  // The canvas has this.width and this.height.
  fit() {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
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
    this.tip.show(node < 0 ? null : this.nodes.describe(node), event);
  }

  // Arrow keys move the selection, Enter zooms, Escape and Backspace zoom out.
  press(event) {
    if (!this.nodes || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.zoom(this.selected);
    else if (event.key === "Escape" || event.key === "Home") this.zoom(0);
    else if (event.key === "Backspace") this.zoom(Math.max(0, this.nodes.parents[this.zoomed]));
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
    const { nodes, selected } = this;
    const parent = nodes.parents[selected];
    const siblings = parent < 0 ? [] : nodes.childrenOf(parent);
    const next = (step) => siblings[siblings.indexOf(selected) + step] ?? -1;
    return { ArrowUp: parent, ArrowDown: nodes.childrenOf(selected)[0] ?? -1, ArrowLeft: next(-1), ArrowRight: next(1) }[key];
  }

  // Fills #path with the nodes from the root to the zoomed one.
  showPath(name = (node) => this.nodes.name(node)) {
    const nodes = this.nodes.path(this.zoomed);
    const few = nodes.length > 8 ? [nodes[0], nodes[1], null, ...nodes.slice(-5)] : nodes;
    document.getElementById("path").replaceChildren(...few.map((node, at) => {
      if (node === null) return element("li", { className: "muted" }, `… ${nodes.length - 7} more …`);
      if (at === few.length - 1) return element("li", { "aria-current": "true" }, name(node));
      return element("li", {}, element("button", { type: "button", onclick: () => this.zoom(node) }, name(node)));
    }));
  }
}
