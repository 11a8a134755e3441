// The data in the page, zlib streams in base64, and the start of its script.

// The unpacked bytes of an element; null without such an element.
async function unpack(id) {
  const element = document.getElementById(id);
  if (!element) return null;
  if (typeof DecompressionStream === "undefined") throw new Error("this browser has no DecompressionStream; use Chrome 80, Firefox 113, Safari 16.4 or newer");
  const text = atob(element.textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) packed[index] = text.charCodeAt(index);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpackJson(id) { return JSON.parse(new TextDecoder().decode(await unpack(id))); }

// Runs a page's script and notes in the root element how that went; `more` is said with a failure.
function startPage(name, view, start, more = "") {
  start().then(() => { document.documentElement.dataset[name] = "drawn"; }, (error) => {
    document.documentElement.dataset[name] = "failed";
    const note = document.getElementById("failure");
    note.hidden = false;
    note.textContent = `The ${view} cannot be drawn: ${error.message}. ${more}`.trim();
  });
}

// Index of the last one in a list, sorted by a number, whose number is not above `value`; -1: none.
function lastNotAbove(list, value, size = list.length, number = (one) => one) {
  let low = 0;
  let high = size;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (number(list[middle]) <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// Reads LEB128 numbers of up to 53 bits.
class Varints {
  constructor(bytes, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get more() { return this.at < this.end; }

  next() {
    let value = 0;
    let unit = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * unit;
      if (byte < 128) return value;
      unit *= 128;
      if (this.at >= this.end) throw new Error("the data in this page is damaged");
    }
  }
}
