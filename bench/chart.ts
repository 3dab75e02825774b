import { init } from 'echarts'
import type { EChartsOption } from 'echarts'

/** An axis's label with its unit: `CPU a request, µs`. */
interface Axes { title: string, x: string, y: string }

export interface LineChart extends Axes {
  /** A logarithmic x axis, for sizes that grow by factors; all x must be above 0. */
  logX?: boolean
  series: ReadonlyArray<{ name: string, points: ReadonlyArray<readonly [x: number, y: number]>, dashed?: boolean }>
}

export interface BarChart {
  title: string
  /** The label of the bars' axis, with its unit. */
  x: string
  /** The bars' names, from top to bottom. */
  bars: readonly string[]
  /** Parts of each bar, from its start on; one number per bar, null if it has no such part. */
  parts: ReadonlyArray<{ name: string, values: ReadonlyArray<number | null> }>
}

const width = 760
const textStyle = { fontFamily: 'system-ui, sans-serif', color: '#24292f' }
// Dark enough on white, and distinguishable for colour-blind readers (Okabe and Ito).
const color = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00']

/** An SVG line chart. It has its own background, so that it is legible on light and dark pages, and needs no fonts or scripts. */
export function lineChart ({ title, x, y, logX = false, series }: LineChart): string {
  return draw(420, {
    ...common(title, series.length),
    grid: { left: 70, right: 40, top: 60, bottom: 90 },
    xAxis: { ...axis(x, 32), type: logX ? 'log' : 'value', axisLabel: { formatter: shortNumber } },
    yAxis: { ...axis(y, 48), type: 'value', min: 0, axisLabel: { formatter: shortNumber } },
    series: series.map(({ name, points, dashed = false }) => ({
      type: 'line',
      name,
      data: points.map(([x, y]) => [x, y]),
      symbol: 'circle',
      symbolSize: 7,
      lineStyle: { width: 2, type: dashed ? 'dashed' : 'solid' },
    })),
  })
}

/** An SVG chart of horizontal stacked bars, each with its sum at the end. */
export function barChart ({ title, x, bars, parts }: BarChart): string {
  const sums = bars.map((_, bar) => parts.reduce((sum, { values }) => sum + (values[bar] ?? 0), 0))
  const longest = Math.max(...bars.map(bar => bar.length))
  return draw(150 + 38 * bars.length, {
    ...common(title, parts.length),
    grid: { left: 30 + 7 * longest, right: 60, top: 60, bottom: 90 },
    xAxis: { ...axis(x, 32), type: 'value', min: 0, axisLabel: { formatter: shortNumber } },
    yAxis: { type: 'category', data: [...bars], inverse: true, axisTick: { show: false }, axisLabel: { ...textStyle, fontSize: 13 } },
    series: parts.map(({ name, values }, part) => ({
      type: 'bar',
      name,
      stack: 'all',
      barWidth: 22,
      data: values.map(value => value ?? 0),
      // The last part carries the sum, even if it is empty.
      label: { show: part === parts.length - 1, position: 'right', ...textStyle, formatter: ({ dataIndex }) => shortNumber(sums[dataIndex] ?? NaN) },
    })),
  })
}

function common (title: string, names: number): EChartsOption {
  return {
    animation: false,
    backgroundColor: '#ffffff',
    color,
    textStyle,
    title: { text: title, left: 16, top: 14, textStyle: { ...textStyle, fontSize: 16, fontWeight: 'bold' } },
    legend: { show: names > 1, bottom: 12, icon: 'roundRect', itemWidth: 18, itemHeight: 6, itemGap: 20, textStyle: { ...textStyle, fontSize: 13 } },
  }
}

function axis (name: string, nameGap: number) {
  return { name, nameGap, nameLocation: 'middle' as const, nameTextStyle: { ...textStyle, fontSize: 13 }, splitLine: { lineStyle: { color: '#e3e6ea' } } }
}

/** 1000 as 1k, 5000000 as 5M, 33.24 as 33.2. */
function shortNumber (number: number): string {
  for (const [unit, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']] as const) {
    if (number >= unit) return `${Number((number / unit).toPrecision(3))}${letter}`
  }
  return String(Number(number.toPrecision(3)))
}

function draw (height: number, option: EChartsOption): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height })
  chart.setOption(option)
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}
