"use strict";

const box = document.getElementById("find");
const count = document.getElementById("count");
const cards = [...document.querySelectorAll("section .card")];
const everything = count.textContent;

box.addEventListener("input", () => {
  const parts = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const card of cards) {
    card.hidden = !parts.every((part) => card.dataset.find.includes(part));
    shown += !card.hidden;
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector(".card:not([hidden])");
  }
  count.textContent = parts.length ? `${shown} of ${everything}` : everything;
});

// While a card is pointed at or has the focus: first its thumbnails one after the other, then the clip, if it plays.
function play(card) {
  const film = card.querySelector(".film");
  if (card.stop || !film || !card.dataset.clip) return;
  const tiles = Number(film.style.getPropertyValue("--tiles"));
  const atRest = film.style.getPropertyValue("--tile");
  let tile = 0;
  const timer = setInterval(() => film.style.setProperty("--tile", tile++ % tiles), 250);
  const video = document.createElement("video");
  const [start, stop] = [Number(card.dataset.start), Number(card.dataset.stop)];
  video.muted = video.playsInline = true;
  video.src = `${card.dataset.clip}#t=${start}`;
  const again = () => { video.currentTime = start; video.play().catch(() => {}); };
  video.addEventListener("timeupdate", () => { if (video.currentTime >= stop) again(); });
  video.addEventListener("ended", again);
  video.addEventListener("playing", () => film.append(video), { once: true });
  video.play().catch(() => {});
  card.stop = () => {
    clearInterval(timer);
    film.style.setProperty("--tile", atRest);
    video.removeAttribute("src");
    video.load();
    video.remove();
    card.stop = null;
  };
}

for (const card of document.querySelectorAll(".card")) {
  for (const begin of ["pointerenter", "focus"]) card.addEventListener(begin, () => play(card));
  for (const end of ["pointerleave", "blur"]) card.addEventListener(end, () => card.stop?.());
}
