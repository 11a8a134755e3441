// Levels of memory, events and processes: their names and colours. The titles of levels come with the page, their colours
// with its style sheet.

// Of processes that have no levels.
const UNDIVIDED = { key: "undivided", title: "processes without culet/agent", colour: "#c9c9c4", dark: "#4a4f57" };

// titles: by key, in the order of the chart.
function levelsWith(titles) {
  const level = ([key, title]) => ({ key, title, get colour() { return styled(`--${key}`); }, get dark() { return this.colour; } });
  return [...Object.entries(titles).map(level), UNDIVIDED];
}

const PARTS_OF_SHARING = [
  { key: "private_bytes", title: "private", colour: "#d55e00", dark: "#e0702a" },
  { key: "shared_bytes", title: "shared", colour: "#56b4e9", dark: "#2d6f99" },
  { key: "swap_bytes", title: "swapped out", colour: "#4b4b4b", dark: "#b9bdc4" },
];

const KINDS_OF_EVENTS = [
  { key: "major_gc", title: "major collections", colour: "#0072b2", dark: "#4fb0ee" },
  { key: "trim", title: "trims", colour: "#009e73", dark: "#2cc598" },
  { key: "fork", title: "forks", colour: "#7a5cc0", dark: "#a58be8" },
  { key: "exit", title: "exits", colour: "#b3261e", dark: "#ff8a80" },
  { key: "restart", title: "restarts", colour: "#cc5c9d", dark: "#ec8fc3" },
  { key: "limit", title: "steps of the limit", colour: "#b07800", dark: "#e9b949" },
];

const OTHER_EVENT = { key: "other", title: "other", colour: "#62666e", dark: "#a3a7af" };

function eventKind(event) { return KINDS_OF_EVENTS.find((kind) => kind.key === event.kind) || OTHER_EVENT; }

const PROCESS_COLOURS = [["#0072b2", "#4fb0ee"], ["#d55e00", "#ee7420"], ["#009e73", "#12b086"], ["#cc79a7", "#d68fb6"], ["#b07800", "#e9b949"],
  ["#56b4e9", "#8fd0f5"], ["#7a5cc0", "#a58be8"], ["#62666e", "#a3a7af"]];
const DASHES = [[], [6, 4], [2, 3]];

// A process keeps its colour while the page is open.
class Colours {
  constructor() { this.places = new Map(); }

  of(key) {
    if (!this.places.has(key)) this.places.set(key, this.places.size);
    const place = this.places.get(key);
    const [colour, dark] = PROCESS_COLOURS[place % PROCESS_COLOURS.length];
    return { colour, dark, dash: DASHES[Math.floor(place / PROCESS_COLOURS.length) % DASHES.length] };
  }
}
