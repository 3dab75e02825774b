// When a poll fails, poll again after a pause.
for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, event => {
    const { id } = event.target
    if (id !== 'list' && id !== 'standing') return
    setTimeout(() => {
      const part = document.getElementById(id)
      if (part) window.htmx.trigger(part, 'again')
    }, 2000)
  })
}

// A visible page asks whether another person was faster; a hidden page holds no connection.
const watching = () => document.querySelector('[data-watch]')
document.addEventListener('visibilitychange', () => {
  const part = watching()
  if (part) window.htmx.trigger(part, document.hidden ? 'htmx:abort' : 'again')
})
document.addEventListener('htmx:beforeRequest', event => {
  if (event.target.matches('[data-watch]') && document.hidden) event.preventDefault()
})
// Without a session it asks no more. The page stays where a decision, or anything else, was typed or ticked: the form
// brings that to the sign-in.
const isChanged = field => field.matches('[type=checkbox], [type=radio]')
  ? field.checked !== field.defaultChecked
  : field.matches('input, textarea') && field.value !== field.defaultValue
const isFilledIn = form => [...form.elements].some(isChanged)
const isTyped = () => [...document.querySelectorAll('form[method=post]')].some(isFilledIn)
// Signing out may lead to an issuer's page: a poll that is refused meanwhile must not lead elsewhere.
let isSigningOut = false
document.addEventListener('submit', event => { isSigningOut ||= event.target.matches('[action$="/sign-out"]') })
window.addEventListener('pageshow', () => { isSigningOut = false })
document.addEventListener('htmx:beforeOnLoad', event => {
  const stays = event.target.matches('[data-watch]') || isTyped() || isSigningOut
  if (event.detail.xhr.status === 401 && stays) event.preventDefault()
})

// Moments in the reader's time zone and way of writing them; their titles have UTC. The clock here counts for nothing.
const [minute, second] = [{ hour: '2-digit', minute: '2-digit' }, { second: '2-digit' }]
const zone = { timeZoneName: 'short' }
const date = { year: 'numeric', month: 'short', day: 'numeric' }
const moments = Object.fromEntries(Object.entries({
  '': { ...date, ...minute, ...second, ...zone }, clock: { ...minute, ...second }, minute: { ...minute, ...zone }
}).map(([name, parts]) => [name, new Intl.DateTimeFormat(undefined, parts)]))
const showTimes = part => {
  for (const time of part.querySelectorAll('time[data-moment]')) {
    time.textContent = moments[time.dataset.moment].format(new Date(time.dateTime))
    time.removeAttribute('data-moment')
  }
}
showTimes(document)
document.addEventListener('htmx:afterSettle', () => showTimes(document))

// Times that are typed are the reader's too: each has its zone beside it, as of that day.
const two = number => String(number).padStart(2, '0')
const zoneAt = moment => {
  const minutes = -moment.getTimezoneOffset()
  const [hour, minute] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60]
  return `${minutes < 0 ? '-' : '+'}${two(hour)}:${two(minute)}`
}
for (const zone of document.querySelectorAll('[data-zone]')) {
  const field = document.getElementById(zone.dataset.zone)
  const today = field.type === 'time' ? `${new Date().toISOString().slice(0, 10)}T` : ''
  const given = new Date(`${today}${field.value}${zone.value}`)
  if (!isNaN(given)) {
    const local = `${given.getFullYear()}-${two(given.getMonth() + 1)}-${two(given.getDate())}T${two(given.getHours())}:${two(given.getMinutes())}:${two(given.getSeconds())}`
    field.value = today === '' ? local : local.slice(11)
  }
  const showZone = () => {
    const typed = new Date(today + field.value)
    zone.value = zoneAt(isNaN(typed) ? new Date() : typed)
    zone.nextElementSibling.textContent = `your time, UTC${zone.value}`
  }
  field.addEventListener('input', showZone)
  showZone()
}

// What is selected, to be copied, stays selected: a part that is replaced would lose it.
const isSelected = part => {
  const selection = document.getSelection()
  if (selection === null || selection.isCollapsed) return false
  const more = part.getAttribute('hx-select-oob')
  return [part, more && document.querySelector(more)].some(one => one && selection.getRangeAt(0).intersectsNode(one))
}

// On a phone the navigation is one line: where it is now is in view.
document.querySelector('.places [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })

// Nor does a picture jump back to its corner when it is drawn again.
let scrolled = null
document.addEventListener('htmx:beforeSwap', () => {
  const picture = document.getElementById('picture')
  scrolled = picture && { left: picture.scrollLeft, top: picture.scrollTop }
})
document.addEventListener('htmx:afterSettle', () => {
  const picture = document.getElementById('picture')
  if (scrolled && picture) picture.scrollTo(scrolled.left, scrolled.top)
})

// The list of approvals stays as it is while something in it is ticked: nothing moves under the finger.
const chosen = document.getElementById('chosen')
const ticked = () => document.querySelectorAll('.pick :checked').length
const unticked = chosen?.textContent
let isOld = false
const showCount = () => {
  if (!chosen) return
  const count = ticked()
  const words = count === 0 ? unticked : `${count} ticked.${isOld ? ' The list has changed; it shows that when nothing is ticked.' : ''}`
  if (chosen.textContent !== words) chosen.textContent = words
  showAll(count)
}

// All that are shown, ticked with one box.
const all = document.getElementById('all')
const boxes = () => [...document.querySelectorAll('.pick input')]
const showAll = count => {
  if (!all) return
  all.closest('p').hidden = boxes().length === 0
  all.checked = count > 0 && count === boxes().length
  all.indeterminate = count > 0 && !all.checked
}
all?.addEventListener('change', () => {
  for (const box of boxes()) box.checked = all.checked
  goOn()
  showCount()
})
document.addEventListener('htmx:afterSettle', () => showCount())
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
showCount()
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
  showCount()
})
document.addEventListener('change', event => {
  if (!event.target.matches('.pick input')) return
  goOn()
  showCount()
})

// A part that keeps itself up to date waits while it is hidden, and while a form in it is being filled in.
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

// A link that looks like a button also works like one.
document.addEventListener('keydown', event => {
  if (event.key !== ' ' || !event.target.matches('a[role=button]')) return
  event.preventDefault()
  event.target.click()
})
