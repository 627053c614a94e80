'use strict';
(() => {
  const find = (id) => document.getElementById(id);

  // Series of a picture can be switched off.
  for (const figure of document.querySelectorAll('figure')) {
    const names = [...new Set([...figure.querySelectorAll('g[data-series]')].map((g) => g.dataset.series))];
    if (names.length < 2) continue;
    const row = document.createElement('div');
    row.className = 'toggles';
    row.setAttribute('role', 'group');
    row.setAttribute('aria-label', 'Series');
    for (const name of names) {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'series';
      button.textContent = name;
      button.setAttribute('aria-pressed', 'true');
      button.addEventListener('click', () => {
        const on = button.getAttribute('aria-pressed') !== 'true';
        button.setAttribute('aria-pressed', String(on));
        for (const g of figure.querySelectorAll('g[data-series]')) {
          if (g.dataset.series === name) g.classList.toggle('off', !on);
        }
      });
      row.append(button);
    }
    figure.append(row);
  }

  // What is under the pointer says its figures at once.
  const tip = find('tip');
  document.addEventListener('pointerover', (event) => {
    const title = event.target.closest && event.target.closest('g') && event.target.closest('g').querySelector(':scope > title');
    tip.hidden = !title;
    tip.textContent = title ? title.textContent : '';
  });

  // One size at a time.
  const picker = find('picker');
  if (picker) {
    picker.hidden = false;
    const show = () => {
      for (const size of document.querySelectorAll('.size')) {
        size.style.display = size.dataset.size === find('size').value ? 'block' : 'none';
      }
    };
    find('size').addEventListener('change', show);
    show();
  }

  // A call, moment by moment, over the drawing of the machine.
  const player = find('player');
  if (!player) return;
  player.hidden = false;
  const data = JSON.parse(find('playback').textContent);
  const figure = find('plot-machine');
  const links = [...figure.querySelectorAll('g[data-link]')].map((g) => {
    const line = g.querySelector('polyline');
    return { line, width: Number(line.getAttribute('stroke-width')), numbers: g.dataset.link.split(' ').filter(Boolean).map(Number) };
  });
  const deepest = Math.max(1, ...data.links.filter(Boolean).map((link) => Math.max(...link.queue)));
  const show = () => {
    const at = Number(find('time').value);
    for (const { line, width, numbers } of links) {
      const most = (what) => Math.max(0, ...numbers.map((n) => (data.links[n] ? data.links[n][what][at] : 0)));
      const level = Math.round(most('busy') / 100 * 6) + 2;
      line.style.stroke = `var(--heat-${Math.min(8, level)})`;
      line.style.strokeWidth = width * (1 + 1.5 * Math.sqrt(most('queue') / deepest));
    }
    for (const { gpu, does } of data.ranks) {
      const box = figure.querySelector(`g[data-gpu="${gpu}"] rect`);
      if (box) box.style.fill = does[at] < data.doings.length ? `color-mix(in srgb, var(--doing-${does[at]}) 45%, var(--paper))` : '';
    }
    const counts = data.doings.map((word, index) => [word, data.ranks.filter((rank) => rank.does[at] === index).length]);
    const told = counts.filter((one) => one[1]).map(([word, count]) => `${count} ${word}`).join(', ');
    find('now').textContent = `${data.times[at]} us: ${told || 'nothing'}`;
    const queues = data.links.filter((link) => link && link.queue[at]).sort((a, b) => b.queue[at] - a.queue[at]).slice(0, 4);
    find('queues').replaceChildren(...queues.map((link) => {
      const item = document.createElement('li');
      item.textContent = `${link.label}: ${link.queue[at]} packets wait, sends ${link.busy[at]} %`;
      return item;
    }));
  };
  find('time').addEventListener('input', show);
  let timer = 0;
  find('play').addEventListener('click', () => {
    const start = !timer;
    clearInterval(timer);
    timer = 0;
    find('play').setAttribute('aria-pressed', String(start));
    find('play').textContent = start ? 'Pause' : 'Play';
    if (start) {
      timer = setInterval(() => {
        find('time').value = (Number(find('time').value) + 1) % data.times.length;
        show();
      }, 80);
    }
  });
})();
