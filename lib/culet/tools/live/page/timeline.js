// The moment that the page shows: the last one, or one that was chosen; the window of the charts.

const FRAME_MILLISECONDS = 100;
// More than these are not told apart on most screens, and take long to draw.
const MOST_POINTS = 600;

class Timeline {
  constructor(store, settings, change) {
    Object.assign(this, { store, settings, change, n: null, seconds: 300, timer: null });
    const part = (id) => document.getElementById(id);
    this.button = part("pause");
    this.slider = part("scrub");
    this.speed = part("speed");
    part("speeds").hidden = !settings.recording;
    this.button.addEventListener("click", () => this.toggle());
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    part("window").addEventListener("change", (event) => this.widen(Number(event.target.value)));
    document.addEventListener("keydown", (event) => this.key(event));
    if (settings.recording) {
      this.seconds = 0;
      part("window").value = "0";
    }
  }

  get following() { return this.n === null; }

  get playing() { return this.timer !== null; }

  get index() { return this.following ? this.store.moments.length - 1 : this.store.indexOf(this.n); }

  get moment() { return this.store.moments[this.index]; }

  go(index) {
    this.stop();
    this.show(index);
  }

  show(index) {
    const at = Math.min(Math.max(index, 0), this.store.moments.length - 1);
    this.n = this.store.moments.length ? this.store.moments[at].n : null;
    this.change();
  }

  toggle() {
    if (this.settings.recording) return this.playing ? this.go(this.index) : this.play();
    if (this.following) return this.go(this.index);
    this.n = null;
    return this.change();
  }

  // Plays a recording from the chosen moment on, or from the start.
  play() {
    if (this.index >= this.store.moments.length - 1) this.show(0);
    let at = this.moment.at;
    this.timer = setInterval(() => {
      at += (FRAME_MILLISECONDS / 1000) * Number(this.speed.value);
      const last = this.store.moments.length - 1;
      const index = this.store.indexAt(at);
      if (index >= last) this.stop();
      if (index !== this.index) this.show(index); else this.change();
    }, FRAME_MILLISECONDS);
    this.change();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
  }

  widen(seconds) {
    this.seconds = seconds;
    this.change();
  }

  // First and last second of the charts: up to the last moment, or around an earlier one.
  get range() {
    const { moments, last } = this.store;
    if (!last) return [0, 1];
    const first = moments[0].at;
    const whole = this.seconds || Math.max(last.at - first, 1);
    let end = last.at;
    if (this.seconds && !this.following && this.moment.at < end - whole) end = Math.min(end, this.moment.at + whole / 2);
    // A page that was just opened fills its charts from the left.
    return [Math.max(end - whole, Math.min(first, end - Math.min(whole, 60))), end];
  }

  // The moments in that range, and one on each side.
  get window() {
    const [from, to] = this.range;
    return this.store.moments.slice(this.store.indexAt(from), this.store.indexAt(to) + 2);
  }

  // Of these moments at most about MOST_POINTS: of each run the one with the largest total, so that peaks stay; and the first,
  // the last and the chosen one. Runs are counted from the first frame, so that points stay while the window moves.
  thinned(moments) {
    const length = Math.ceil(moments.length / MOST_POINTS);
    if (length < 2) return moments;
    const total = ({ state }) => (state.total && state.total.pss_bytes) || 0;
    const kept = new Set([moments[0], moments[moments.length - 1], this.moment]);
    let largest = moments[0];
    for (const moment of moments) {
      if (Math.floor(moment.n / length) !== Math.floor(largest.n / length)) {
        kept.add(largest);
        largest = moment;
      } else if (total(moment) > total(largest)) {
        largest = moment;
      }
    }
    return moments.filter((moment) => kept.has(moment));
  }

  key(event) {
    const typing = /^(SELECT|TEXTAREA)$/.test(event.target.tagName) || (event.target.tagName === "INPUT" && event.target.type !== "checkbox");
    if (typing || event.altKey || event.ctrlKey || event.metaKey) return;
    const press = event.target.closest("button, summary, a, label") && (event.key === " " || event.key === "Enter");
    const keys = { " ": () => this.toggle(), ArrowLeft: () => this.go(this.index - 1), ArrowRight: () => this.go(this.index + 1) };
    if (press || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  render() {
    this.slider.max = Math.max(0, this.store.moments.length - 1);
    this.slider.value = Math.max(0, this.index);
    this.slider.setAttribute("aria-valuetext", this.moment ? clock(this.moment.at) : "");
    const [on, off] = this.settings.recording ? ["Pause", "Play"] : ["Pause", "Go live"];
    this.button.textContent = (this.settings.recording ? this.playing : this.following) ? on : off;
  }
}
