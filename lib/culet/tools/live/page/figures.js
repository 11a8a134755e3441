// Figures and times as text.

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });
const UNKNOWN = "–";

function known(value) { return value !== undefined && value !== null; }

function bytesText(bytes) { return known(bytes) ? (bytes === 0 ? "0" : size(bytes)) : UNKNOWN; }

// A limit, or bytes that stand beside one, as Culet::Text::Size.limit writes them: in powers of two where it was given so.
function limitText(bytes, limit = bytes) {
  const found = limit % 1e6 !== 0 && [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20]].find(([, one]) => limit % one === 0);
  if (!known(bytes) || !found) return bytesText(bytes);
  const value = bytes / found[1];
  return `${bytes === limit ? grouped(value) : significant(value)} ${found[0]}`;
}

// "+4.20 MB", "−310 kB", "0"
function signedBytes(bytes) { return bytes ? signed(bytes) : bytesText(bytes); }

function countText(number) { return known(number) ? grouped(Math.round(number)) : UNKNOWN; }

function clock(at) { return CLOCK.format(at * 1000); }

function day(at) { return DAY.format(at * 1000); }

// "puma: cluster worker 0: 4200 [app] (4242)", the same for as long as the process lives.
function processName(process) { return `${process.title} (${process.pid})`; }

// The sum of the known values; undefined if none is known.
function sumOf(list) { return list.reduce((sum, one) => (known(one) ? (sum || 0) + one : sum), undefined); }

// Replaces the children of a table that change each second only where they differ, so that focus and selection stay.
function update(parent, made) {
  const old = [...parent.children];
  made.forEach((one, index) => {
    if (!old[index]) parent.append(one);
    else if (!old[index].isEqualNode(one)) morph(old[index], one);
  });
  old.slice(made.length).forEach((one) => one.remove());
}

// No element that is updated has text beside elements.
function morph(old, made) {
  if (old.tagName !== made.tagName || old.children.length !== made.children.length) return old.replaceWith(made);
  for (const name of new Set([...old.getAttributeNames(), ...made.getAttributeNames()])) {
    if (made.hasAttribute(name)) old.setAttribute(name, made.getAttribute(name)); else old.removeAttribute(name);
  }
  if (!made.children.length) {
    if (old.textContent !== made.textContent) old.textContent = made.textContent;
    return undefined;
  }
  return [...made.children].forEach((one, index) => { if (!old.children[index].isEqualNode(one)) morph(old.children[index], one); });
}
