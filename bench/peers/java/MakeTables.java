import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;

/** Makes Iceberg tables, empty, from files with their schemas. */
public final class MakeTables {

    /** Arguments: catalog, namespace, catalog properties (name: value), NAME.json for each table. */
    public static void main(String[] args) throws Exception {
        var properties = new HashMap<String, String>();
        for (String line : Files.readAllLines(Path.of(args[2]))) {
            int at = line.indexOf(": ");
            properties.put(line.substring(0, at), line.substring(at + 2));
        }
        Catalog catalog = CatalogUtil.buildIcebergCatalog(args[0], properties, new Configuration());
        var namespace = Namespace.of(args[1]);
        ((SupportsNamespaces) catalog).createNamespace(namespace);
        for (String path : List.of(args).subList(3, args.length)) {
            var file = Path.of(path);
            String name = file.getFileName().toString().replace(".json", "");
            var schema = SchemaParser.fromJson(Files.readString(file));
            catalog.createTable(TableIdentifier.of(namespace, name), schema);
        }
    }
}
