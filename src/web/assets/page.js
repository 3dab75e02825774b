// When the list could not be asked for what is new, it is asked again in a while.
for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, () => {
    setTimeout(() => {
      const list = document.getElementById('list')
      if (list) window.htmx.trigger(list, 'again')
    }, 2000)
  })
}

// How much of the page's end is under the decision, so that what has the keyboard is not (page.css).
const decision = document.querySelector('.decision')
if (decision) new window.ResizeObserver(() => document.documentElement.style.setProperty('--decision', `${decision.offsetHeight + 8}px`)).observe(decision)
