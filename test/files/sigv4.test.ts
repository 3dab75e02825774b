import t from 'tap'
import { presign, signHeaders } from '../../src/files/sigv4.ts'

/**
 * The examples that AWS publishes in "Signature Calculations for the Authorization Header" and "Authenticating Requests: Using Query
 * Parameters" (AWS Signature Version 4, Amazon S3 API Reference).
 */
const key = { accessKey: 'AKIAIOSFODNN7EXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', region: 'us-east-1' }
const at = Date.parse('2013-05-24T00:00:00.000Z')
const at_ = (path: string) => new URL(`https://examplebucket.s3.amazonaws.com${path}`)
const signatureIn = (headers: Record<string, string>) => /Signature=(\w+)$/.exec(headers.authorization!)![1]

t.test('header fields are signed as AWS says', async t => {
  const got = signHeaders({ method: 'GET', url: at_('/test.txt'), headers: { range: 'bytes=0-9' }, at }, key)
  t.equal(got.authorization, 'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41')
  t.match(got, { 'x-amz-date': '20130524T000000Z', 'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' })
  const put = { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' }
  t.equal(signatureIn(signHeaders({ method: 'PUT', url: at_('/test$file.text'), headers: put, at }, key, '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072')),
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd')
  t.equal(signatureIn(signHeaders({ method: 'GET', url: at_('/?lifecycle'), headers: {}, at }, key)), 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543')
  t.equal(signatureIn(signHeaders({ method: 'GET', url: at_('/?max-keys=2&prefix=J'), headers: {}, at }, key)), '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7')
})

t.test('a URL is signed as AWS says', async t => {
  const signed = presign({ method: 'GET', url: at_('/test.txt'), headers: {}, at }, key, 86_400)
  t.equal(signed.searchParams.get('X-Amz-Signature'), 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404')
  t.equal(signed.href, 'https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request' +
    '&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404')
})

t.test('a query is coded as it is signed', async t => {
  const url = at_('/a%20b/(c)')
  url.searchParams.set('response-content-disposition', "attachment; filename=\"a\"; filename*=UTF-8''%C3%A9 +~*")
  const { search } = presign({ method: 'GET', url, headers: {}, at }, key, 1)
  t.ok(search.includes('response-content-disposition=attachment%3B%20filename%3D%22a%22%3B%20filename%2A%3DUTF-8%27%27%25C3%25A9%20%2B~%2A&'))
  t.notOk(search.includes('+'))
})
