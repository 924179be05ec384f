const paths = {
  chat: 'M4 5h16v11H9l-5 4z',
  cache: 'M4 4h4v4H4zM10 4h4v4h-4zM16 4h4v4h-4zM4 10h4v4H4zM10 10h4v4h-4zM16 10h4v4h-4zM4 16h4v4H4zM10 16h4v4h-4zM16 16h4v4h-4z',
  plan: 'M4 6h16M4 12h16M4 18h16M14 6v6M9 12v6',
  menu: 'M4 7h16M4 12h16M4 17h16',
  add: 'M12 5v14M5 12h14',
  send: 'M12 19V5M5.5 11.5 12 5l6.5 6.5',
  stop: 'M7 7h10v10H7z',
  attach: 'M19 11.5 12 18.5a4.6 4.6 0 0 1-6.5-6.5l7-7a3 3 0 0 1 4.3 4.3l-7 7a1.5 1.5 0 0 1-2.1-2.1l6.3-6.3',
  copy: 'M9 9h10v11H9zM5 15V4h10',
  check: 'M5 12.5 10 17 19 7',
  edit: 'M5 19h3.5L19 8.5 15.5 5 5 15.5zM13 7.5l3.5 3.5',
  again: 'M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4',
  goOn: 'M5 5v14l8-7zM17 5v14',
  before: 'M14.5 6 8.5 12l6 6',
  after: 'M9.5 6l6 6-6 6',
  tune: 'M4 8h8M18 8h2M4 16h2M12 16h8M15 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM9 13.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z',
  remove: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  save: 'M12 4v11M7 10.5 12 15.5l5-5M5 20h14',
  close: 'M6 6l12 12M18 6 6 18',
  key: 'M14.5 4a5 5 0 1 1-3.9 8.1L5 17.7V20H3v-4.3l6.4-6.4A5 5 0 0 1 14.5 4zM15.5 8.5h.01',
  light: 'M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4',
  dark: 'M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z',
  auto: 'M12 4a8 8 0 1 1 0 16zM12 4a8 8 0 0 0 0 16',
};

export type IconName = keyof typeof paths;

export function Icon({name}: {name: IconName}) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

/** A small circle of experts, kept close. */
export function Mark() {
  const ring = Array.from({length: 10}, (_, i) => (i / 10) * 2 * Math.PI);
  return (
    <svg class="mark" viewBox="-16 -16 32 32" aria-hidden="true">
      {ring.map((angle) => (
        <circle class="mark-outer" cx={12 * Math.sin(angle)} cy={-12 * Math.cos(angle)} r="1.7" />
      ))}
      {[0, 1, 2].map((i) => (
        <circle
          class="mark-inner"
          cx={4.4 * Math.sin((i * 2 * Math.PI) / 3)}
          cy={-4.4 * Math.cos((i * 2 * Math.PI) / 3)}
          r="3.1"
        />
      ))}
    </svg>
  );
}
