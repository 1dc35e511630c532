// Pictures and videos: whether all of them are there and, where wanted, videos were played to their end.

import { make, say } from "./words.js";

const NEARLY_ALL = 0.98;
const NO_SOURCE = 3;

export class Media {
  /** `watched`: videos must have been played; `changed` is called whenever something became so or failed. */
  constructor(root, timeline, { watched, changed }) {
    this.timeline = timeline;
    this.watched = watched;
    this.changed = changed;
    this.all = [...root.querySelectorAll("[data-medium]")];
    this.failed = new Set();
    this.started = new Set();
    this.seen = new Set();
    this.again = 0;
    for (const medium of this.all) this.follow(medium);
    addEventListener("online", () => this.retry());
    this.check();
  }

  get videos() {
    return this.all.filter((medium) => medium.localName === "video");
  }

  /** A picture is there when all of it is, a video once it has begun to be: it may wait for data later on. */
  isThere(medium) {
    if (medium.localName === "img") return medium.complete && medium.naturalWidth > 0;
    if (medium.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) this.started.add(medium);
    return this.started.has(medium) && !medium.error;
  }

  /** How many are there, and whether a vote may be given. */
  get there() {
    return this.all.filter((medium) => this.isThere(medium)).length;
  }

  get loaded() {
    return this.there === this.all.length;
  }

  get ready() {
    return this.loaded && (!this.watched || this.videos.every((video) => this.seen.has(video)));
  }

  follow(medium) {
    const isVideo = medium.localName === "video";
    medium.addEventListener(isVideo ? "loadeddata" : "load", () => this.mend(medium));
    medium.addEventListener("error", () => this.fail(medium));
    if (isVideo) this.followVideo(medium);
    const failedBefore = isVideo
      ? medium.error || medium.networkState === NO_SOURCE
      : medium.complete && medium.naturalWidth === 0;
    if (failedBefore) this.fail(medium);
  }

  followVideo(video) {
    const tell = () => {
      const share = this.share(video);
      this.timeline.note(`played:${video.dataset.number}:${share.toFixed(2)}`);
    };
    video.addEventListener("play", tell);
    video.addEventListener("pause", tell);
    video.addEventListener("ended", tell);
    video.addEventListener("contextmenu", (event) => event.preventDefault());
    if (!this.watched) return;
    video.addEventListener("ratechange", () => {
      if (video.playbackRate > 1) video.playbackRate = 1;
    });
    for (const name of ["timeupdate", "pause", "ended"]) video.addEventListener(name, () => this.watch(video));
  }

  /** Return the share of a video that was played; what was skipped does not count. */
  share(video) {
    let seconds = 0;
    for (let range = 0; range < video.played.length; range += 1) {
      seconds += video.played.end(range) - video.played.start(range);
    }
    return video.duration > 0 ? Math.min(1, seconds / video.duration) : 0;
  }

  watch(video) {
    if (this.seen.has(video) || this.share(video) < NEARLY_ALL) return;
    this.seen.add(video);
    this.changed();
  }

  fail(medium) {
    this.failed.add(medium);
    this.started.delete(medium);
    const frame = medium.closest("[data-frame]");
    frame?.classList.add("failed");
    if (frame && !frame.querySelector(".failure")) {
      frame.append(make("p", { className: "failure", textContent: say("media.failed") }));
    }
    this.changed();
  }

  mend(medium) {
    this.failed.delete(medium);
    const frame = medium.closest("[data-frame]");
    frame?.classList.remove("failed");
    frame?.querySelector(".failure")?.remove();
    this.check();
    this.changed();
  }

  check() {
    if (this.loaded && !this.told) {
      this.told = true;
      this.timeline.note("loaded");
    }
  }

  /** Ask for what failed once more. */
  retry() {
    this.again += 1;
    for (const medium of this.failed) {
      const address = new URL(medium.src, location.href);
      address.searchParams.set("again", String(this.again));
      medium.src = address.pathname + address.search;
    }
  }

  /** Say, for a report, what failed: how many of what. */
  trouble() {
    const names = [...this.failed].map((medium) => (medium.localName === "video" ? "video" : "picture"));
    return `${names.length} of ${this.all.length}: ${[...new Set(names)].join(", ")}`;
  }
}
