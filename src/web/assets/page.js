// When a poll of the list fails, poll again after a pause.
for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, () => {
    setTimeout(() => {
      const list = document.getElementById('list')
      if (list) window.htmx.trigger(list, 'again')
    }, 2000)
  })
}

// The height of the decision bar, so that page.css can keep the focused element from being under it.
const decision = document.querySelector('.decision')
if (decision) new window.ResizeObserver(() => document.documentElement.style.setProperty('--decision', `${decision.offsetHeight + 8}px`)).observe(decision)
