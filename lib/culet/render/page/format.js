// Figures and addresses as text.

const SIZE_UNITS = [["PB", 1e15], ["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];

// Three significant digits, as Culet::Text::Size.human writes them.
function size(bytes) {
  const found = SIZE_UNITS.find(([, one]) => Math.abs(bytes) >= one);
  if (!found) return `${bytes} ${Math.abs(bytes) === 1 ? "byte" : "bytes"}`;
  return `${significant(bytes / found[1])} ${found[0]}`;
}

// "+4.20 MB", "−310 kB", "±0"
function signed(bytes) {
  const rounded = Math.round(bytes);
  return rounded === 0 ? "±0" : `${rounded > 0 ? "+" : "−"}${size(Math.abs(rounded))}`;
}

function significant(value) {
  const [whole, tens] = [Math.abs(value) >= 99.95, Math.abs(value) >= 9.995];
  return whole ? grouped(Math.round(value)) : value.toFixed(tens ? 1 : 2);
}

function grouped(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, ","); }

function counted(number, noun, plural = `${noun}s`) {
  const rounded = Math.round(number);
  return `${grouped(rounded)} ${rounded === 1 ? noun : plural}`;
}

function hex(address) { return `0x${address.toString(16)}`; }

function share(part, whole) { return whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : "–"; }

// An element with text children: text from the process is never parsed as markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "className") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}
