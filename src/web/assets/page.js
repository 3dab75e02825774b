// When a poll of the list fails, poll again after a pause.
for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, () => {
    setTimeout(() => {
      const list = document.getElementById('list')
      if (list) window.htmx.trigger(list, 'again')
    }, 2000)
  })
}

// What is selected, to be copied, stays selected: a part that is replaced would lose it.
const isSelected = part => {
  const selection = document.getSelection()
  return selection !== null && !selection.isCollapsed && selection.getRangeAt(0).intersectsNode(part)
}

// The list of approvals stays as it is while something in it is ticked: nothing moves under the finger.
const chosen = document.getElementById('chosen')
const ticked = () => document.querySelectorAll('.pick :checked').length
const unticked = chosen?.textContent
let isOld = false
const tell = () => {
  if (!chosen) return
  const count = ticked()
  const words = count === 0 ? unticked : `${count} ticked.${isOld ? ' The list has changed; it shows that when nothing is ticked.' : ''}`
  if (chosen.textContent !== words) chosen.textContent = words
}
tell()
// With the list come the count above it and the decisions below it.
const isHeld = part => part.id === 'list'
  ? ticked() > 0 || isSelected(document.getElementById('main'))
  : part.matches('[data-live]') && isSelected(part)
const goOn = () => {
  const list = document.getElementById('list')
  if (!isOld || list === null || isHeld(list)) return
  isOld = false
  window.htmx.trigger(list, 'again')
}
document.addEventListener('selectionchange', goOn)
document.addEventListener('htmx:beforeSwap', event => {
  const list = event.target
  if (!isHeld(list) || !event.detail.shouldSwap) return
  event.detail.shouldSwap = false
  if (list.id !== 'list') return
  const seen = /seen=[\w-]+$/.exec(list.getAttribute('hx-get'))[0]
  if (event.detail.serverResponse.includes(`${seen}"`)) {
    setTimeout(() => window.htmx.trigger(list, 'again'), 250)
  } else isOld = true
  tell()
})
document.addEventListener('change', event => {
  if (!event.target.matches('.pick input')) return
  goOn()
  tell()
})

// A part that keeps itself up to date waits while nobody looks at it, and while a form in it is being filled in.
const isChanged = field => field.matches('[type=checkbox], [type=radio]')
  ? field.checked !== field.defaultChecked
  : field.matches('input, textarea') && field.value !== field.defaultValue
document.addEventListener('htmx:beforeRequest', event => {
  const part = event.target
  if (!part.matches('[data-live]')) return
  const isInUse = part.querySelector('form :focus') !== null || [...part.querySelectorAll('form *')].some(isChanged)
  if (document.hidden || isInUse || isSelected(part)) event.preventDefault()
})

// It says so if it can't.
const stale = document.getElementById('stale')
if (stale) {
  for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
    document.addEventListener(name, () => { stale.hidden = false })
  }
  document.addEventListener('htmx:afterOnLoad', event => { if (event.detail.successful !== false) stale.hidden = true })
}

// The height of the decision bar, so that page.css can keep the focused element from being under it.
const decision = document.querySelector('.decision')
if (decision) new window.ResizeObserver(() => document.documentElement.style.setProperty('--decision', `${decision.offsetHeight + 8}px`)).observe(decision)
