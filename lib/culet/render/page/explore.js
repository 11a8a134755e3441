// Shared by pages that explore memory: a search field, colours of a canvas, and parts of tables.

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
    for (const name of ["paper", "ink", "focus", "rest"]) this[name] = styled(`--${name}`);
    this.onBox = styled("--on-box");
    this.font = `12px ${styled("--sans")}`;
  }
}
