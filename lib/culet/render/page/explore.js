// What pages that explore memory have besides the view: a search field, and the path to the zoomed node.

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

// Fills #path with the nodes from the root to the zoomed one.
function showPath(nodes, name, onZoom) {
  const few = nodes.length > 8 ? [nodes[0], nodes[1], null, ...nodes.slice(-5)] : nodes;
  document.getElementById("path").replaceChildren(...few.map((node, at) => {
    if (node === null) return element("li", { className: "muted" }, `… ${nodes.length - 7} more …`);
    if (at === few.length - 1) return element("li", { "aria-current": "true" }, name(node));
    return element("li", {}, element("button", { type: "button", onclick: () => onZoom(node) }, name(node)));
  }));
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

// A canvas with nodes. A subclass has draw(), at(x, y), the node at a position (-1: none), parent(node), zoom(node),
// click(node), step(key), which moves the selection and returns whether the key does so, and `nodes`, which describes
// them.
class NodeCanvas {
  // root: has the focus; place: gets the canvas; options.tip shows the node under the pointer
  constructor(root, place, options) {
    Object.assign(this, { root, options, canvas: element("canvas"), zoomed: 0, selected: 0, hovered: -1, found: null });
    place.append(this.canvas);
    this.context = this.canvas.getContext("2d");
    root.addEventListener("focus", () => this.draw());
    root.addEventListener("blur", () => this.draw());
    root.addEventListener("keydown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.under(event), event));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => this.click(this.under(event)));
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
    this.options.tip.show(node < 0 ? null : this.nodes.describe(node), event);
  }

  // Arrow keys move the selection, Enter zooms, Escape and Backspace zoom out.
  press(event) {
    if (!this.nodes || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") this.zoom(this.selected);
    else if (event.key === "Escape" || event.key === "Home") this.zoom(0);
    else if (event.key === "Backspace") this.zoom(Math.max(0, this.parent(this.zoomed)));
    else if (!this.step(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }
}
