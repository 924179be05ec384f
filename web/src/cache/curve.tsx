import {useEffect, useRef} from 'preact/hooks';
import UPlot from 'uplot';
import {colour, watchColours} from '../shell/theme';

interface Props {
  title: string;
  now: string; // the latest value, in words
  times: number[]; // seconds since 1970
  series: {colour: string; values: (number | null)[]}[]; // colours are names of custom properties
  most?: number; // of the scale; nothing: what is there
  least?: number; // that the scale reaches; nothing: 1
  show: (value: number) => string;
}

const kHeight = 92;
const kLeastSpan = 30; // seconds

function options({series, most, least, show}: Props, width: number): UPlot.Options {
  const ink = colour('--ink-3');
  const line = colour('--line');
  const axis = {stroke: ink, font: '11px ui-monospace, monospace', ticks: {show: false}};
  return {
    width,
    height: kHeight,
    legend: {show: false},
    cursor: {show: false},
    padding: [8, 4, 8, 0],
    scales: {
      x: {time: true, range: (_, first, last) => [Math.min(first, last - kLeastSpan), last]},
      y: {range: (_, __, top) => [0, most ?? Math.max(top * 1.15, least ?? 1)]},
    },
    axes: [
      {...axis, show: false},
      {...axis, size: 62, gap: 4, space: 30, grid: {stroke: line, width: 1}, values: (_, values) => values.map(show)},
    ],
    series: [
      {},
      ...series.map((one) => ({
        stroke: colour(one.colour),
        fill: series.length === 1 ? `${colour(one.colour)}22` : undefined,
        width: 1.5,
        points: {show: false},
        spanGaps: true,
      })),
    ],
  };
}

const dataOf = (props: Props): UPlot.AlignedData => [props.times, ...props.series.map((one) => one.values)];

/** What a figure did in the last three minutes. */
export function Curve(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot>();
  const latest = useRef(props);
  latest.current = props;
  const colours = props.series.map((one) => one.colour).join();
  useEffect(() => {
    const place = box.current;
    if (!place) return;
    const make = () => {
      plot.current?.destroy();
      plot.current = new UPlot(options(latest.current, place.clientWidth), dataOf(latest.current), place);
    };
    make();
    const observer = new ResizeObserver(() => plot.current?.setSize({width: place.clientWidth, height: kHeight}));
    observer.observe(place);
    const unwatch = watchColours(make);
    return () => {
      unwatch();
      observer.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [colours]);
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [props.times]);
  return (
    <section class="curve" aria-label={`${props.title}: ${props.now}`}>
      <h3>{props.title}</h3>
      <p class="value">{props.now}</p>
      <div ref={box} class="plot" aria-hidden="true" />
    </section>
  );
}
