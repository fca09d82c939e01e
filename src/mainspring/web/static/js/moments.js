// Keeps "12s ago" true between two answers of the server: <time data-ago datetime=…>.
const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

export function words(seconds) {
  const size = Math.abs(seconds);
  if (size < 1) return "now";
  const place = units.findIndex(([length]) => size >= length);
  const [length, unit] = units[place];
  const whole = Math.floor(size / length);
  let text = `${whole}${unit}`;
  if (place < 2 && whole < 10) {
    const [smaller, sign] = units[place + 1];
    const rest = Math.floor((size - whole * length) / smaller);
    if (rest) text += ` ${rest}${sign}`;
  }
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

// The server's clock, not this machine's: they may differ.
const now = document.querySelector('meta[name="now"]')?.content;
const ahead = now ? Date.parse(now) - Date.now() : 0;

function tick() {
  if (document.hidden) return;
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const said = words((Date.now() + ahead - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== said) time.textContent = said;
  }
}
setInterval(tick, 1000);
