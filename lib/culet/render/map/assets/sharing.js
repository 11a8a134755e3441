// Sharing of each page with the related process's page at the same address.

const SHARINGS = [
  { key: "absent", colour: "#ffffff", dark: "#101216", title: "not in memory" },
  { key: "shared", colour: "#9ecae1", dark: "#2d5f80", title: "shared or file-backed" },
  { key: "unshared", colour: "#d55e00", dark: "#ee7420", title: "unshared since the fork" },
  { key: "fresh", colour: "#7f7f7f", dark: "#9aa0a8", title: "added since the fork" },
];

const Sharing = {
  // Index into SHARINGS of a cell's state.
  of(state) {
    if ((state & KIND_BITS) < FIRST_RESIDENT) return 0;
    if (state & UNSHARED) return 2;
    return state & PRIVATE ? 3 : 1;
  },

  // Bytes of the picture's cells by sharing.
  tally(picture) { return picture.tally(SHARINGS, (cell) => (picture.kind(cell) > 0 ? Sharing.of(picture.states[cell]) : -1)); },
};
