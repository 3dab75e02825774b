// When the list could not be asked for what is new, it is asked again in a while.
for (const name of ['htmx:responseError', 'htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, () => {
    setTimeout(() => {
      const list = document.getElementById('list')
      if (list) window.htmx.trigger(list, 'again')
    }, 2000)
  })
}
