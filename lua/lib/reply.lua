-- A script that appends events ends with this. Where they are relayed, its reply has what it appended in front of its
-- first word, or of the number that it is: a table more would cost Redis more than that.
--@if relayed
if appended ~= '' then
  if type(reply) ~= 'table' then return appended .. ms(reply) end
  reply[1] = appended .. reply[1]
end
--@end
return reply
