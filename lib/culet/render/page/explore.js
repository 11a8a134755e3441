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
