// Figures, addresses and descriptions as text.

const SIZE_UNITS = [["PB", 1e15], ["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]];

// Three significant digits, as Culet::Text::Size.human writes them.
function size(bytes) {
  const found = SIZE_UNITS.find(([, one]) => Math.abs(bytes) >= one);
  if (!found) return `${bytes} ${Math.abs(bytes) === 1 ? "byte" : "bytes"}`;
  return `${significant(bytes / found[1])} ${found[0]}`;
}

function significant(value) {
  const [whole, tens] = [Math.abs(value) >= 99.95, Math.abs(value) >= 9.995];
  return whole ? grouped(Math.round(value)) : value.toFixed(tens ? 1 : 2);
}

function grouped(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, ","); }

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

// The lines of the tooltip of a cell.
function describe(picture, found) {
  const kind = picture.kinds[picture.kind(found.cell)];
  const span = found.piece[3] === null ? null : picture.facts.mappings[found.piece[3]];
  const lines = [];
  if (found.block) {
    const { address, bytes, state, what } = found.block;
    lines.push(`${what} ${hex(address)}: ${grouped(bytes)} bytes, ${BLOCK_WORDS[state]}`);
  }
  lines.push(`page ${hex(found.address)}: ${describeState(picture, found.cell, kind)}`);
  if (kind.key !== "returned") lines.push(describeSharing(picture, picture.states[found.cell]));
  lines.push(found.strip.section.title);
  if (span) lines.push([span.label, span.path && span.path !== span.label ? span.path : null].filter(Boolean).join(", "));
  return lines.filter(Boolean);
}

function describeSharing(picture, state) {
  if (picture.facts.sharing) return SHARINGS[Sharing.of(state)].title;
  return state & PRIVATE ? "private" : "shared or file-backed";
}

function describeState(picture, cell, kind) {
  if (kind.key === "heap" || kind.key === "ruby") {
    const used = picture.used(cell);
    const rest = picture.pageBytes - used;
    const name = kind.key === "heap" ? "malloc" : "Ruby";
    if (used === 0) return `${name}, free, resident`;
    return rest === 0 ? `${name}, in use` : `${name}, ${grouped(used)} of ${grouped(picture.pageBytes)} bytes in use`;
  }
  return kind.text;
}
